//! Runs the program as a newcomer does.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;
use std::process::Command;

fn run(folder: &Path, order: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_quick-start"))
        .current_dir(folder)
        .args(order)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn it_says_what_the_book_says() {
    let folder = tempfile::tempdir().unwrap();
    let first = run(folder.path(), &[]);
    assert_eq!(first, "order-1 is placed\norder-1 is invoiced\n");
    let again = run(folder.path(), &[]);
    assert_eq!(
        again,
        "order-1 was placed by an earlier run\norder-1 is invoiced\n"
    );
    let other = run(folder.path(), &["order-2"]);
    assert_eq!(other, "order-2 is placed\norder-2 is invoiced\n");
}
