//! The program as a whole, on a real server.

use outbox_bench_harness::smoke;

const PROGRAM: &str = env!("CARGO_BIN_EXE_outbox-bench-peers-obix");

#[test]
fn obix_drains_what_it_was_given() {
    smoke::every_system(PROGRAM).unwrap();
}

#[test]
fn the_version_listed_is_the_one_that_is_locked() {
    smoke::versions(PROGRAM, include_str!("../Cargo.lock")).unwrap();
}
