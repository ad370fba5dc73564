//! Wrong uses of the attributes do not compile, each with an error on the user's token that says
//! what to do.
//!
//! `ui/<attribute>/<kind of fault>.rs` has its expected errors beside it in `.stderr`. After a
//! wanted change of messages, `TRYBUILD=overwrite cargo test -p outbox-tests --test ui` writes
//! them anew; read the difference before you commit it.

use std::process::Command;

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
        println!("skipped: the expected errors are worded by {COMPILER}x, this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*/*.rs");
}
