//! Wrong uses of the attributes do not compile, each with an error on the user's token that says
//! what to do.
//!
//! `ui/<attribute>/<kind of fault>.rs` has its expected errors beside it in `.stderr`. After a
//! wanted change of messages, `TRYBUILD=overwrite cargo test -p outbox-tests --test ui` writes
//! them anew; read the difference before you commit it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The compiler whose wording the `.stderr` files hold.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn wrong_uses_are_refused_with_a_remedy() {
    let version = Command::new("rustc")
        .arg("--version")
        .output()
        .expect("rustc runs");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(COMPILER) {
        let reason = format!("the expected errors are those of {COMPILER}x; this is {version}");
        assert!(env::var_os("OUTBOX_TEST_REQUIRE_ALL").is_none(), "{reason}");
        println!("skipped: {reason}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*/*.rs");
}

#[test]
fn the_books_table_of_errors_is_what_the_compiler_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let said = compiler_output(&root.join("tests/ui"));
    let page = fs::read_to_string(root.join("../book/src/attributes/errors.md")).expect("the page");
    let mut attribute = String::new();
    let mut rows = 0;
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            attribute = heading.trim_matches(['`', '#', '[', ']']).to_owned();
        }
        let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
        let (Some(_), Some(message)) = (cells.next(), cells.next()) else {
            continue;
        };
        if message == "what the compiler says" {
            continue;
        }
        rows += 1;
        let found = said
            .iter()
            .filter(|(folder, _)| attribute == "All attributes" || **folder == attribute)
            .any(|(_, output)| output.contains(message));
        assert!(found, "{attribute}: no test in tests/ui says: {message}");
    }
    assert!(rows > 100, "{rows} rows");
}

/// All of the expected errors, by attribute.
fn compiler_output(folder: &Path) -> BTreeMap<String, String> {
    let mut output = BTreeMap::<String, String>::new();
    for attribute in fs::read_dir(folder).expect("the folder") {
        let attribute = attribute.expect("an entry");
        let name = attribute.file_name().to_string_lossy().into_owned();
        for file in fs::read_dir(attribute.path()).expect("a folder for each attribute") {
            let file = file.expect("an entry").path();
            if file
                .extension()
                .is_some_and(|extension| extension == "stderr")
            {
                let text = fs::read_to_string(file).expect("text");
                output.entry(name.clone()).or_default().push_str(&text);
            }
        }
    }
    output
}
