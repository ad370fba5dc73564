use std::fs;
use std::path::Path;

/// Each test that the table of failure cases names is there.
#[test]
fn names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("README.md")).unwrap();
    let mut named = 0;
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let mut source = String::new();
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        // Every other piece stands between backticks.
        for name in tests.split('`').skip(1).step_by(2) {
            if name.ends_with(".rs") {
                let path = root.join(name);
                source = fs::read_to_string(&path).unwrap_or_else(|error| {
                    panic!("{}: {error}", path.display());
                });
            } else {
                let exists = ["(", "<"].map(|next| source.contains(&format!("fn {name}{next}")));
                assert!(exists.contains(&true), "there is no test {name}");
                named += 1;
            }
        }
    }
    assert!(named > 40, "{named}");
}
