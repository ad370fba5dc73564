//! The architecture rules, checked by reading the sources line by line.
//!
//! A rule is a file here and a line in [`check`]. They read text, not types:
//! enough to keep honest authors honest, and quick.

mod backends;
mod clock;
mod domain;
mod layers;
mod length;
mod macros;
mod names;
mod paths;
mod source;
mod sql;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;
use source::Source;

/// What a check found.
#[derive(Debug)]
pub(crate) struct Findings {
    /// How many files were read.
    pub(crate) files: usize,
    pub(crate) broken: Vec<Finding>,
}

/// A breach of one rule at one place.
#[derive(Debug)]
pub(crate) struct Finding {
    file: String,
    breach: Breach,
}

/// What a rule says of a line.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}",
            self.file, self.breach.line, self.breach.message
        )
    }
}

/// Checks every file of the workspace at `root` that is or may become tracked.
pub(crate) fn check(root: &Path) -> Result<Findings> {
    let mut findings = Findings {
        files: 0,
        broken: Vec::new(),
    };
    for file in files(root)? {
        // A picture is no text, and a file may be deleted but still in the index.
        let Ok(text) = fs::read_to_string(root.join(&file)) else {
            continue;
        };
        findings.files += 1;
        let breaches = check_text(&file, &text);
        let found = breaches.into_iter().map(|breach| Finding {
            file: file.clone(),
            breach,
        });
        findings.broken.extend(found);
    }
    if findings.files == 0 {
        bail!("git lists no file in {}", root.display());
    }
    Ok(findings)
}

fn check_text(file: &str, text: &str) -> Vec<Breach> {
    let mut breaches = names::check(file, text);
    breaches.extend(sql::check_file(file));
    if file.ends_with(".rs") {
        let source = Source::read(file, text);
        breaches.extend(length::check(&source));
        breaches.extend(layers::check(&source));
        breaches.extend(domain::check(&source));
        breaches.extend(clock::check(&source));
        breaches.extend(sql::check(&source));
        breaches.extend(backends::check(&source));
        breaches.extend(macros::check(&source));
    }
    // One line may name the same thing twice.
    breaches.dedup();
    breaches
}

fn files(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    // A container often checks out as another user than the one who runs this.
    git.args(["-c", "safe.directory=*", "ls-files", "-z"]);
    git.args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root);
    let list = process::capture(&mut git).context("tidy asks git for the workspace's files")?;
    Ok(list
        .split('\0')
        .filter(|file| !file.is_empty())
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages of all rules for one made-up file, each with its line.
    pub(super) fn breaches(file: &str, text: &str) -> Vec<String> {
        check_text(file, text)
            .into_iter()
            .map(|breach| format!("{}: {}", breach.line, breach.message))
            .collect()
    }
}
