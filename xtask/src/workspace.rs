//! What cargo knows about this workspace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The workspace: its folders and its packages.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
    /// Where tools are installed that only this workspace uses.
    pub(crate) tools: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) published: bool,
    pub(crate) features: Vec<String>,
}

impl Workspace {
    /// Reads `cargo metadata` of the workspace that this task belongs to.
    pub(crate) fn locate() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().context("xtask has no parent folder")?;
        let text = process::capture(cargo_in(root).args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
        ]))?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata is no JSON")?;
        let target = metadata
            .get("target_directory")
            .and_then(Value::as_str)
            .context("cargo metadata names no target directory")?;
        let packages = metadata
            .get("packages")
            .and_then(Value::as_array)
            .context("cargo metadata lists no packages")?;
        Ok(Self {
            root: root.to_owned(),
            target: target.into(),
            tools: Path::new(target).join("tools"),
            packages: packages.iter().filter_map(package).collect(),
        })
    }

    /// A cargo command in the workspace's root.
    pub(crate) fn cargo(&self) -> Command {
        cargo_in(&self.root)
    }
}

fn package(value: &Value) -> Option<Package> {
    let mut features: Vec<String> = value
        .get("features")?
        .as_object()?
        .keys()
        .cloned()
        .collect();
    features.sort();
    Some(Package {
        name: value.get("name")?.as_str()?.to_owned(),
        // `publish = false` becomes an empty list of registries.
        published: value
            .get("publish")
            .and_then(Value::as_array)
            .is_none_or(|registries| !registries.is_empty()),
        features,
    })
}

fn cargo_in(root: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(root);
    command
}
