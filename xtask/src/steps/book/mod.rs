//! `cargo xtask book`: builds the book and checks its listings and links.

mod links;
mod listings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;
use crate::report::{Outcome, Report};
use crate::tools::MDBOOK;
use crate::workspace::Workspace;

/// Runs the task; `false` if the book has a fault.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let mut report = Report::new(false);
    step(workspace, true, &mut report)?;
    Ok(report.finish())
}

/// Builds and checks the book as one step.
pub(super) fn step(workspace: &Workspace, install: bool, report: &mut Report) -> Result<()> {
    report.step("book", || {
        let mdbook = match MDBOOK.locate(workspace, install) {
            Ok(mdbook) => mdbook,
            Err(error) => return Ok(Outcome::NotExercised(format!("{error:#}"))),
        };
        let book = workspace.root.join("book");
        let mut faults = build(&mdbook, &book)?;
        let chapters = files(&book.join("src"), "md")?;
        for chapter in &chapters {
            faults.extend(listings::check(chapter, &read(chapter)?));
        }
        let pages = files(&book.join("book"), "html")?;
        faults.extend(links::check(&pages)?);
        for fault in &faults {
            println!("{fault}");
        }
        Ok(match faults.len() {
            0 => Outcome::Passed(format!("{} files", chapters.len())),
            count => Outcome::Failed(format!("{count} faults")),
        })
    })
}

/// Runs mdBook; what it only warns of is a fault here.
fn build(mdbook: &Path, book: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut command = Command::new(mdbook);
    // A caller's log filter could hide the warnings.
    command
        .arg("build")
        .arg(book)
        .env_remove("RUST_LOG")
        .env_remove("MDBOOK_LOG");
    let status = process::run_merged(command, |line| {
        let level = line.split_whitespace().next().unwrap_or_default();
        if ["WARN", "ERROR"].contains(&level) {
            faults.push(format!("mdbook: {}", line.trim()));
        } else {
            println!("{line}");
        }
    })?;
    if !status.success() && faults.is_empty() {
        bail!("mdbook {}", process::describe(status));
    }
    Ok(faults)
}

/// All files under a folder whose name ends so.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("no folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}
