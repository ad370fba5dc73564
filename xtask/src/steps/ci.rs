//! `cargo xtask ci`: all that a change must pass.

use anyhow::Result;

use super::{fault_points, outcome_of, test};
use crate::cli::TestOptions;
use crate::report::Report;
use crate::tools::CARGO_DENY;
use crate::workspace::Workspace;

const DENY_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

/// Runs the task; every step runs, so that one run tells all faults.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let mut report = Report::new(true);
    report.step("formatting", || {
        outcome_of(workspace.cargo().args(["fmt", "--all", "--check"]))
    })?;
    report.step("licences, bans and sources", || {
        let deny = CARGO_DENY.locate(workspace, true)?;
        outcome_of(
            std::process::Command::new(deny)
                .current_dir(&workspace.root)
                .args([
                    "--all-features",
                    "check",
                    "--hide-inclusion-graph",
                    "bans",
                    "licenses",
                    "sources",
                ]),
        )
    })?;
    report.step("clippy", || {
        let all = ["clippy", "--workspace", "--all-targets", "--all-features"];
        outcome_of(workspace.cargo().args(all).args(DENY_WARNINGS))
    })?;
    report.step("documentation", || {
        let all = ["doc", "--workspace", "--no-deps", "--all-features"];
        outcome_of(
            workspace
                .cargo()
                .env("RUSTDOCFLAGS", "-D warnings")
                .args(all),
        )
    })?;
    for (package, feature) in single_features(workspace) {
        let name = format!("{package} with {}", feature.unwrap_or("no feature"));
        report.step(&name, || {
            let mut cargo = workspace.cargo();
            cargo.args(["clippy", "--package", package, "--no-default-features"]);
            if let Some(feature) = feature {
                cargo.args(["--features", feature]);
            }
            outcome_of(cargo.args(DENY_WARNINGS))
        })?;
    }
    fault_points::step(workspace, &mut report)?;
    let options = TestOptions {
        require_all: true,
        no_install: false,
        filter: Vec::new(),
    };
    test::steps(workspace, &options, &mut report)?;
    Ok(report.finish())
}

/// Each published package with no feature at all, then with each one alone.
fn single_features(workspace: &Workspace) -> Vec<(&str, Option<&str>)> {
    let mut all = Vec::new();
    for package in workspace
        .packages
        .iter()
        .filter(|package| package.published)
    {
        let features = package
            .features
            .iter()
            .map(|feature| Some(feature.as_str()));
        all.extend(
            std::iter::once(None)
                .chain(features)
                .map(|one| (package.name.as_str(), one)),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn every_feature_of_a_published_package_is_tried_alone() {
        let package = |name: &str, published, features: &[&str]| Package {
            name: name.to_owned(),
            published,
            features: features.iter().map(|&feature| feature.to_owned()).collect(),
        };
        let workspace = Workspace {
            root: "root".into(),
            tools: "tools".into(),
            target: "target".into(),
            packages: vec![
                package("library", true, &["default", "extra"]),
                package("tests", false, &["other"]),
            ],
        };
        assert_eq!(
            single_features(&workspace),
            [
                ("library", None),
                ("library", Some("default")),
                ("library", Some("extra"))
            ]
        );
    }
}
