//! The program as a whole, on a real server.

use outbox_bench_harness::smoke;

const PROGRAM: &str = env!("CARGO_BIN_EXE_outbox-bench-peers");

#[test]
fn every_system_drains_what_it_was_given() {
    smoke::every_system(PROGRAM).unwrap();
}

#[test]
fn the_versions_listed_are_those_that_are_locked() {
    // obix is listed here as well, once it was built into the same target folder.
    let locks = concat!(
        include_str!("../Cargo.lock"),
        include_str!("../obix/Cargo.lock")
    );
    smoke::versions(PROGRAM, locks).unwrap();
}

#[test]
fn a_system_that_is_not_there_is_named() {
    let output = smoke::run(PROGRAM, "nosuch", "postgres://127.0.0.1/none").unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("no system `nosuch`"), "{errors}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    // Nothing listens on port 1.
    let url = "postgres://postgres@127.0.0.1:1/postgres";
    let output = smoke::run(PROGRAM, "pgmq", url).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("cannot connect to PostgreSQL"), "{errors}");
}
