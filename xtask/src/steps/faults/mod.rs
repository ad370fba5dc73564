//! `cargo xtask faults` and `cargo xtask soak`: what goes wrong, and what it comes to.
//!
//! The work is done by the program `faults` of the package `outbox-tests`, which tells a line of
//! JSON for each thing that happens. Here it is built, given servers, and shown.

pub(crate) mod clock_library;
mod grid;
mod lines;
mod view;

use std::process::Command;

use anyhow::{Context, Result, bail};
use outbox_servers::{Kind, REQUIRE_ALL};
use serde_json::{Value, json};

use crate::cli::{Database, FaultsOptions, RunOptions, Sabotage, SoakOptions};
use crate::process;
use crate::report::{Outcome, Report};
use crate::servers::{self, Policy, Servers};
use crate::workspace::Workspace;
use lines::Line;
use view::View;

/// Runs the matrix; `false` if a promise was broken.
pub(crate) fn matrix(workspace: &Workspace, options: &FaultsOptions) -> Result<bool> {
    if options.list {
        return list(workspace, options);
    }
    let wanted = json!({
        "only": options.only,
        "messages": options.messages,
        "sabotage": options.sabotage.map(Sabotage::key),
        "database": options.run.database.map(Database::key),
        "seed": options.run.seed,
    });
    // Some cells start brokers of their own.
    let brokers = match options.run.database {
        Some(Database::Sqlite) => &[][..],
        _ => &[Kind::Nats, Kind::Kafka, Kind::RabbitMq, Kind::Redis],
    };
    run(workspace, "matrix", &wanted, brokers, &options.run)
}

/// Tells which cells there are.
fn list(workspace: &Workspace, options: &FaultsOptions) -> Result<bool> {
    if let Outcome::Failed(how) = build(workspace)? {
        bail!("the workers can't be built: {how}");
    }
    let wanted = json!({
        "list": true,
        "only": options.only,
        "database": options.run.database.map(Database::key),
    });
    let mut command = Command::new(workspace.target.join("debug/faults"));
    let status = process::run(command.arg("matrix").arg(wanted.to_string()))?;
    Ok(status.success())
}

/// Soaks; `false` if a promise was broken.
pub(crate) fn soak(workspace: &Workspace, options: &SoakOptions) -> Result<bool> {
    let wanted = json!({
        "minutes": options.minutes,
        "database": options.run.database.map(Database::key),
        "seed": options.run.seed,
    });
    run(workspace, "soak", &wanted, &[], &options.run)
}

fn run(
    workspace: &Workspace,
    task: &str,
    wanted: &Value,
    brokers: &[Kind],
    options: &RunOptions,
) -> Result<bool> {
    let policy = Policy {
        install: !options.no_install,
        require_all: options.require_all,
    };
    let mut report = match options.json {
        true => Report::silent(options.require_all),
        false => Report::new(options.require_all),
    };
    clock_library::step(policy, &mut report)?;
    let servers = match options.database {
        Some(Database::Sqlite) => None,
        _ => Some(Servers::start(
            &[Kind::Postgres],
            workspace,
            policy,
            &mut report,
        )?),
    };
    let environment = servers::find(brokers, workspace, policy, &mut report)?;
    report.step("build the workers", || build(workspace))?;
    if report.has_failed() {
        bail!("what the runs need could not be made ready");
    }
    let mut command = Command::new(workspace.target.join("debug/faults"));
    command.arg(task).arg(wanted.to_string()).envs(environment);
    if let Some(servers) = &servers {
        servers.announce_to(&mut command);
    }
    // A run that could not be tried is told as such, not as a failed one.
    command.env_remove(REQUIRE_ALL);
    let mut view = View::new(options.json);
    let status = process::run_lines(command, |text| match Line::read(text) {
        Some(line) => view.show(line, text),
        None => eprintln!("{text}"),
    })?;
    if view.is_empty() {
        bail!(
            "the runs did not begin: `faults` {}",
            process::describe(status)
        );
    }
    let sum = view.finish();
    if !status.success() && sum.broken == 0 {
        bail!("`faults` {}", process::describe(status));
    }
    if sum.not_exercised > 0 && options.require_all {
        eprintln!("--require-all: what was not exercised counts as failed");
    }
    Ok(sum.broken == 0 && (sum.not_exercised == 0 || !options.require_all))
}

fn build(workspace: &Workspace) -> Result<Outcome> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--quiet", "--package", "outbox-tests"]);
    // Without the brokers' features, there would be no cells of them.
    cargo.args(["--all-features", "--bin", "faults"]);
    let status = process::run(&mut cargo).context("cargo build")?;
    Ok(match status.success() {
        true => Outcome::Passed(String::new()),
        false => Outcome::Failed(process::describe(status)),
    })
}
