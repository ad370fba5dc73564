//! Every section runs, checks its results, and tells its lines. Nothing is said of how fast.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::process::Command;

use serde_json::Value;

/// It runs the compiler for minutes.
const NOT_HERE: [&str; 1] = ["compile"];

#[test]
fn every_section_tells_its_lines() {
    let Ok(url) = std::env::var("OUTBOX_TEST_POSTGRES_URL") else {
        let must = std::env::var("OUTBOX_TEST_REQUIRE_ALL").is_ok_and(|value| value == "1");
        assert!(!must, "OUTBOX_TEST_POSTGRES_URL is not set");
        println!("skipped: OUTBOX_TEST_POSTGRES_URL is not set");
        return;
    };
    let prefix = format!("outbox_smoke_{}", std::process::id());
    let list = outbox_bench(&["--list"]);
    let sections: Vec<_> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|section| !NOT_HERE.contains(section))
        .collect();
    assert!(sections.len() > 1, "{list}");
    let common = ["--postgres", &url, "--prefix", &prefix, "--tiny", "--json"];
    for section in sections {
        let printed = outbox_bench(&[&common[..], &["--only", section]].concat());
        assert!(!printed.trim().is_empty(), "{section} tells nothing");
        for line in printed.lines() {
            check(section, line);
        }
    }
}

fn check(section: &str, line: &str) {
    let Ok(Value::Object(fields)) = serde_json::from_str(line) else {
        panic!("{section}: {line} is no object");
    };
    let field = |name: &str| {
        let found = fields.get(name);
        found.unwrap_or_else(|| panic!("{section}: {line} has no {name}"))
    };
    for name in ["name", "goal"] {
        assert!(field(name).is_string(), "{section}: {line}");
    }
    assert!(field("met").is_boolean(), "{section}: {line}");
    // JSON has no infinity and no NaN: such a figure would be null.
    let [ours, theirs, ratio] = ["ours", "theirs", "ratio"].map(|name| {
        let figure = field(name).as_f64();
        figure.unwrap_or_else(|| panic!("{section}: the {name} of {line} is no number"))
    });
    assert!(ours >= 0.0 && theirs > 0.0, "{section}: {line}");
    assert!((ratio - ours / theirs).abs() < 1e-9, "{section}: {line}");
}

fn outbox_bench(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_outbox-bench"))
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
