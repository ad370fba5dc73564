//! For tests: lets a program measure each of its systems once, briefly, and checks what it tells.

use std::env;
use std::io::{self, Write as _};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const URL: &str = "OUTBOX_TEST_POSTGRES_URL";
const ROWS: u64 = 500;

/// Measures every system that the program lists, one after the other, on the server that the environment names.
pub fn every_system(program: &str) -> Result<()> {
    let Ok(url) = env::var(URL) else {
        // Written past the capture of the test harness: a test that did not run must not look like one that did.
        let message = format!("NOT RUN: set {URL} to a server on which databases may be created");
        writeln!(io::stderr(), "{message}")?;
        return Ok(());
    };
    for system in list(program)? {
        let name = text(&system, "system")?;
        let output = run(program, name, &url)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name}: {errors}");
        let outcome: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{name} told no JSON"))?;
        for key in ["system", "version"] {
            ensure!(outcome.get(key) == system.get(key), "{key} in {outcome}");
        }
        for (key, number) in [("rows", ROWS), ("handled", ROWS), ("duplicates", 0)] {
            let told = outcome.get(key).and_then(Value::as_u64);
            ensure!(told == Some(number), "{key} in {outcome}");
        }
        let rate = outcome.get("rows_per_second").and_then(Value::as_f64);
        ensure!(rate > Some(0.0), "no pace in {outcome}");
    }
    Ok(())
}

/// Compares the versions that the program lists with those of its lock file.
pub fn versions(program: &str, lock: &str) -> Result<()> {
    let systems = list(program)?;
    ensure!(!systems.is_empty(), "no systems");
    for system in systems {
        let name = text(&system, "system")?;
        let version = text(&system, "version")?.split(' ').next();
        let version = version.context("an empty version")?;
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        ensure!(lock.contains(&entry), "not locked: {entry}");
    }
    Ok(())
}

/// Measures one system.
pub fn run(program: &str, system: &str, url: &str) -> Result<Output> {
    let rows = ROWS.to_string();
    Command::new(program)
        .args([
            "run",
            "--system",
            system,
            "--postgres",
            url,
            "--rows",
            &rows,
        ])
        .output()
        .with_context(|| format!("cannot run {program}"))
}

fn list(program: &str) -> Result<Vec<Value>> {
    let output = Command::new(program).args(["list", "--json"]).output()?;
    ensure!(output.status.success(), "list failed");
    let lines = String::from_utf8(output.stdout)?;
    lines
        .lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value
        .get(key)
        .and_then(Value::as_str)
        .with_context(|| format!("no {key} in {value}"))
}
