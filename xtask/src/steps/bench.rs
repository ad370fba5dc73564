//! `cargo xtask bench`: the benchmarks, on a server of their own with default durability.

use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use outbox_servers::Kind;

use super::outcome_of;
use crate::cli::BenchOptions;
use crate::process;
use crate::report::Report;
use crate::servers::{Policy, Servers};
use crate::workspace::Workspace;

/// Builds the benchmarks and the peers, starts a server, and measures.
///
/// A goal that is not met is told in its line and fails nothing; a wrong result fails.
pub(crate) fn run(workspace: &Workspace, options: &BenchOptions) -> Result<bool> {
    let mut report = match options.json {
        true => Report::silent(true),
        false => Report::new(true),
    };
    report.step("build the benchmarks", || {
        let build = [
            "build",
            "--quiet",
            "--release",
            "--package",
            "outbox-benchmarks",
        ];
        outcome_of(workspace.cargo().args(build))
    })?;
    let peers = workspace.root.join("benchmarks/peers");
    if !options.no_peers {
        // obix cannot be built together with the others; their program looks for its beside itself.
        for (step, folder) in [
            ("build the peers", peers.clone()),
            ("build the peer obix", peers.join("obix")),
        ] {
            report.step(step, || {
                let mut cargo = workspace.cargo();
                cargo.args(["build", "--quiet", "--release", "--locked"]);
                cargo.arg("--target-dir").arg(peers_target(workspace));
                outcome_of(cargo.current_dir(folder))
            })?;
        }
    }
    let policy = Policy {
        install: !options.no_install,
        require_all: true,
    };
    let servers = Servers::start_durable(&[Kind::Postgres], workspace, policy, &mut report)?;
    if report.has_failed() {
        bail!("what the benchmarks need could not be made ready");
    }
    let Some((_, url)) = servers.addresses().next() else {
        bail!("there is no PostgreSQL to measure on");
    };
    let status = process::run(&mut command(workspace, options, url))?;
    if !status.success() {
        eprintln!("xtask: the benchmarks {}", process::describe(status));
    }
    Ok(status.success())
}

fn command(workspace: &Workspace, options: &BenchOptions, url: &str) -> Command {
    let mut command = Command::new(program(workspace.target.clone(), "outbox-bench"));
    command.args(["--postgres", url]);
    command.arg("--workspace").arg(&workspace.root);
    if !options.no_peers {
        let peers = program(peers_target(workspace), "outbox-bench-peers");
        command.arg("--peers").arg(peers);
    }
    for section in &options.only {
        command.args(["--only", section]);
    }
    if let Some(rounds) = options.rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    for (is_set, flag) in [(options.quick, "--quick"), (options.json, "--json")] {
        if is_set {
            command.arg(flag);
        }
    }
    if let Some(file) = &options.plot {
        command.arg("--plot").arg(file);
    }
    command
}

/// Beside what this workspace builds: nothing of the peers may be shared with it.
fn peers_target(workspace: &Workspace) -> PathBuf {
    workspace.target.join("peers")
}

fn program(target: PathBuf, name: &str) -> PathBuf {
    target.join("release").join(format!("{name}{EXE_SUFFIX}"))
}
