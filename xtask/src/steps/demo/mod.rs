//! `cargo xtask demo`: the example of several services on a real broker, while its processes are
//! killed.
//!
//! Everything is started from local binaries and private to the run. What the processes did is read
//! as anybody may read it, by the example's own `status` and `reconcile`.

mod dice;
mod ending;
mod fleet;
mod looking;
mod middle;
mod orders;
mod show;
mod stage;
mod status;

use std::path::PathBuf;

use anyhow::Result;
use outbox_servers::Kind;

use super::outcome_of;
use crate::cli::DemoOptions;
use crate::report::{Outcome, Report};
use crate::servers::Policy;
use crate::workspace::Workspace;
use ending::Ending;
use show::{Looks, Show};
use stage::Stage;

const PROGRAM: &str = "order-fulfilment-distributed";

/// What a run is to be.
#[derive(Debug)]
struct Plan {
    broker: Kind,
    orders: u32,
    /// How often a process is killed, and whether the broker is, once.
    kills: u32,
    kills_broker: bool,
    seed: u64,
    logs: Option<PathBuf>,
}

/// Runs the task; `false` if the books do not balance, or something never came to its end.
pub(crate) fn run(workspace: &Workspace, options: &DemoOptions) -> Result<bool> {
    let mut report = match options.json {
        true => Report::silent(true),
        false => Report::new(true),
    };
    report.step("build the example", || {
        let build = ["build", "--quiet", "--package", PROGRAM];
        outcome_of(workspace.cargo().args(build))
    })?;
    if report.has_failed() {
        return Ok(false);
    }
    let broker = options.broker.kind();
    let plan = Plan {
        broker,
        orders: options.orders,
        kills: if options.no_kill { 0 } else { options.kills },
        kills_broker: !options.no_kill && broker.keeps_confirmed_when_killed(),
        seed: options.seed.unwrap_or_else(|| fastrand::u64(..)),
        logs: options.logs.clone(),
    };
    let policy = Policy {
        install: !options.no_install,
        require_all: true,
    };
    let looks = match options.json {
        true => Looks::Nothing,
        false => Looks::Everything,
    };
    let mut ending = None;
    report.step(&format!("demo on {broker}"), || {
        let mut show = Show::new(looks);
        let stage = match Stage::set(workspace, policy, &plan)? {
            Ok(stage) => stage,
            Err(missing) => return Ok(Outcome::NotExercised(missing)),
        };
        let end = stage.play(&plan, &mut show)?;
        let outcome = end.outcome();
        ending = Some(end);
        Ok(outcome)
    })?;
    if let (true, Some(ending)) = (options.json, &ending) {
        println!("{}", serde_json::to_string_pretty(ending)?);
    }
    Ok(ending.as_ref().is_some_and(Ending::is_good))
}

/// A step for each broker, for the task `test`: small, and with kills.
pub(super) fn steps(workspace: &Workspace, policy: Policy, report: &mut Report) -> Result<()> {
    // With the features that the tests were built with, so that little is left to build.
    report.step("build the demo", || {
        let build = ["build", "--quiet", "--workspace", "--all-features"];
        outcome_of(workspace.cargo().args(build).args(["--bin", PROGRAM]))
    })?;
    for broker in [Kind::Nats, Kind::Kafka, Kind::RabbitMq, Kind::Redis] {
        report.step(&format!("demo on {broker}"), || {
            let plan = Plan {
                broker,
                orders: 150,
                kills: 6,
                kills_broker: broker.keeps_confirmed_when_killed(),
                seed: fastrand::u64(..),
                logs: None,
            };
            match Stage::set(workspace, policy, &plan)? {
                Ok(stage) => {
                    let end = stage.play(&plan, &mut Show::new(Looks::Lines))?;
                    Ok(end.outcome())
                }
                Err(missing) => Ok(Outcome::NotExercised(missing)),
            }
        })?;
    }
    Ok(())
}
