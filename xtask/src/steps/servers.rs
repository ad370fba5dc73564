//! `cargo xtask servers`: the tests' servers beside a command of one's own.

use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use outbox_servers::{KAFKA_SERVER, Kind};

use crate::cli::ServersOptions;
use crate::process;
use crate::report::Report;
use crate::servers::{Policy, Servers};
use crate::workspace::Workspace;

/// Starts the servers and runs the command, or prints their addresses and waits for a signal.
pub(crate) fn run(workspace: &Workspace, options: &ServersOptions) -> Result<bool> {
    let mut report = Report::new(false);
    let policy = Policy {
        install: !options.no_install,
        require_all: false,
    };
    let kinds = match options.only.as_slice() {
        [] => Kind::ALL.to_vec(),
        only => only.iter().map(|one| one.kind()).collect(),
    };
    let servers = Servers::start(&kinds, workspace, policy, &mut report)?;
    if servers.addresses().next().is_none() {
        bail!("no server could be started");
    }
    let Some((program, arguments)) = options.command.split_first() else {
        for (variable, url) in servers.addresses() {
            println!("export {variable}={url}");
        }
        if let Some(program) = servers.kafka_program() {
            println!("export {KAFKA_SERVER}={}", program.display());
        }
        println!("The servers run until Ctrl-C.");
        loop {
            process::check_interrupted()?;
            thread::sleep(Duration::from_millis(100));
        }
    };
    let mut command = Command::new(program);
    servers.announce_to(command.args(arguments));
    let status = process::run(&mut command)?;
    if !status.success() {
        eprintln!("xtask: {program} {}", process::describe(status));
    }
    Ok(status.success())
}
