//! Runs the program: it fails by itself if the trace is not the one it promises.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::process::Command;

#[test]
fn it_ends_with_one_trace_across_three_services() {
    let output = Command::new(env!("CARGO_BIN_EXE_traced-services"))
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("trace "), "{text}");
    // Service and name, indented below its parent.
    let tree: Vec<&str> = lines[1..]
        .iter()
        .map(|line| line.rsplit_once("  ").unwrap().0.trim_end())
        .collect();
    for expected in [
        "orders    POST /orders",
        "orders      commit",
        "payment       handle payment.capture",
        "payment         commit",
        "shipping          handle shipping.send-parcel",
        "shipping            commit",
        "orders                handle orders.note-parcel",
        "orders                  commit",
    ] {
        assert!(tree.contains(&expected), "{expected:?} in {text}");
    }
}
