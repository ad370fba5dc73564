use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

const MANIFEST: &str = include_str!("../../../compile/Cargo.toml.in");
const LIBRARY: &str = include_str!("../../../compile/lib.rs");
const ATTRIBUTES: &str = include_str!("../../../compile/attributes.rs");
const BY_HAND: &str = include_str!("../../../compile/by_hand.rs");
const DESCRIBE: &str = include_str!("../../../compile/describe.rs");

/// How a crate says what the attributes say.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    Attributes,
    ByHand,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Attributes => "with_attributes",
            Self::ByHand => "written_by_hand",
        }
    }

    const fn module(self) -> &'static str {
        match self {
            Self::Attributes => ATTRIBUTES,
            Self::ByHand => BY_HAND,
        }
    }
}

/// A crate whose check is measured.
pub(super) struct Project {
    way: Way,
    folder: PathBuf,
    /// Shared by both crates and kept, so that what they depend on is built once.
    target: PathBuf,
}

impl Project {
    /// Writes the crate, with as many modules as there are to be aggregates.
    pub(super) fn write(
        way: Way,
        parent: &Path,
        workspace: &Path,
        aggregates: usize,
    ) -> Result<Self> {
        let workspace = fs::canonicalize(workspace)?;
        let folder = parent.join(way.name());
        let runtime = workspace.join("outbox-runtime");
        let named = |text: &str| text.replace("THE_CRATE", way.name());
        let manifest = named(MANIFEST).replace("THE_RUNTIME", &runtime.to_string_lossy());
        for part in ["src", "examples"] {
            fs::create_dir_all(folder.join(part))?;
        }
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock"))
            .context("no Cargo.lock: name the workspace with --workspace")?;
        fs::write(folder.join("src/lib.rs"), each(LIBRARY, aggregates))?;
        let describe = each(&named(DESCRIBE), aggregates);
        fs::write(folder.join("examples/describe.rs"), describe)?;
        for number in 0..aggregates {
            let text = numbered(way.module(), number, aggregates);
            fs::write(folder.join(module(number)), text)?;
        }
        Ok(Self {
            way,
            folder,
            target: workspace.join("target/bench-compile"),
        })
    }

    pub(super) const fn name(&self) -> &'static str {
        self.way.name()
    }

    /// Runs the crate and gives what it says of itself.
    pub(super) async fn describe(&self) -> Result<String> {
        let database = self.folder.join("describe.db");
        let mut cargo = self.cargo(&["run", "--example", "describe", "--"]);
        output(cargo.arg(database)).await
    }

    /// Makes the next check a cold one: removes what was made of the crate, not of what it
    /// depends on.
    pub(super) async fn forget(&self) -> Result<()> {
        output(&mut self.cargo(&["clean", "--package", self.name()])).await?;
        Ok(())
    }

    /// Checks the library; the seconds that it takes.
    pub(super) async fn check(&self) -> Result<f64> {
        let start = Instant::now();
        output(&mut self.cargo(&["check", "--lib"])).await?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Edits the first module.
    pub(super) fn edit(&self, edit: impl FnOnce(&str) -> Result<String>) -> Result<()> {
        let file = self.folder.join(module(0));
        let text = edit(&fs::read_to_string(&file)?)?;
        Ok(fs::write(file, text)?)
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut cargo = Command::new(program);
        cargo
            .args(arguments.iter().take(1))
            .args(["--offline", "--quiet"])
            .args(arguments.iter().skip(1))
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "1")
            .kill_on_drop(true);
        cargo
    }
}

fn module(number: usize) -> String {
    format!("src/parcel{number:02}.rs")
}

/// The text with the number of a module for `NN` and that of the next one for `MM`.
fn numbered(text: &str, number: usize, count: usize) -> String {
    let next = (number + 1) % count;
    text.replace("NN", &format!("{number:02}"))
        .replace("MM", &format!("{next:02}"))
}

/// The text with each line that has a number in it once for each module.
fn each(text: &str, count: usize) -> String {
    let lines = text.lines().flat_map(|line| {
        let times = if line.contains("NN") && !line.starts_with("//!") {
            count
        } else {
            1
        };
        (0..times).map(move |number| numbered(line, number, count) + "\n")
    });
    lines.collect()
}

async fn output(command: &mut Command) -> Result<String> {
    let output = command.output().await.context("cargo does not start")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && errors.is_empty(),
        "cargo ended with {} and says:\n{errors}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_number_stands_once_for_each_module() {
        assert_eq!(
            each("a\nmod pNN; // MM\nb", 2),
            "a\nmod p00; // 01\nmod p01; // 00\nb\n"
        );
    }
}
