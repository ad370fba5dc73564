//! For build scripts: what Cargo.lock says of a package, and the files that came with it.
//!
//! Some systems ship their tables as SQL files without a function that applies them. These are taken from the
//! packages as they were downloaded: nothing of another project is copied into this one.

use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Metadata, MetadataCommand, Package};

/// The locked packages of the crate whose build script runs.
#[derive(Debug)]
pub struct Locked(Metadata);

impl Locked {
    /// Asks cargo.
    pub fn read() -> Result<Self> {
        println!("cargo::rerun-if-changed=build.rs");
        println!("cargo::rerun-if-changed=Cargo.lock");
        let target = env::var("TARGET")?;
        let metadata = MetadataCommand::new()
            // Only what this target needs has been downloaded for sure.
            .other_options([
                "--locked".to_owned(),
                "--offline".to_owned(),
                format!("--filter-platform={target}"),
            ])
            .exec()
            .context("`cargo metadata --locked --offline` failed; run `cargo fetch` first")?;
        Ok(Self(metadata))
    }

    /// Gives the crate the version of a package as the variable `PEER_` and its name in capitals.
    pub fn export_version(&self, name: &str) -> Result<()> {
        let variable = name.to_uppercase().replace('-', "_");
        let version = &self.package(name)?.version;
        println!("cargo::rustc-env=PEER_{variable}={version}");
        Ok(())
    }

    /// Writes the package's migrations whose file names are `wanted` as one file to the output folder, oldest
    /// first.
    pub fn copy_migrations(
        &self,
        name: &str,
        wanted: impl Fn(&str) -> bool,
        file: &str,
    ) -> Result<()> {
        let manifest = &self.package(name)?.manifest_path;
        let folder = manifest
            .parent()
            .context("a manifest stands in a folder")?
            .join("migrations");
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".sql") && wanted(&name) {
                names.push(name);
            }
        }
        ensure!(!names.is_empty(), "no migrations in {folder}");
        names.sort();
        let mut joined = String::new();
        for name in names {
            joined.push_str(&fs::read_to_string(folder.join(name))?);
            joined.push('\n');
        }
        let to = PathBuf::from(env::var("OUT_DIR")?).join(file);
        fs::write(&to, joined).with_context(|| format!("cannot write {}", to.display()))
    }

    fn package(&self, name: &str) -> Result<&Package> {
        let mut packages = self.0.packages.iter();
        packages
            .find(|package| package.name.as_str() == name)
            .with_context(|| format!("Cargo.lock has no package {name}"))
    }
}
