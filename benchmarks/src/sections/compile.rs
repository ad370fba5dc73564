mod edits;
mod project;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;

use self::edits::Edit;
use self::project::{Project, Way};
use crate::bench::Bench;
use crate::contest::{Contestant, Samples, measure};
use crate::line::{Goal, Line};

/// Each has four events and two handlers.
const AGGREGATES: usize = 50;
const AGGREGATES_QUICK: usize = 10;

pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let folder = tempfile::tempdir()?;
    let aggregates = bench.size(AGGREGATES, AGGREGATES_QUICK);
    let project = |way| Project::write(way, folder.path(), &bench.workspace, aggregates);
    let mut ours = Compiler::new(project(Way::Attributes)?);
    let mut theirs = Compiler::new(project(Way::ByHand)?);
    check(bench, &ours.project, &theirs.project, aggregates).await?;

    let samples = measure(bench, &mut [&mut ours, &mut theirs]).await?;
    let [ours, theirs] = sides(samples)?;
    let what = format!(
        "a crate of {aggregates} aggregates, {} events, {} handlers",
        aggregates * 4,
        aggregates * 2
    );
    let names = [
        (format!("cargo check, {what}"), 1.3),
        (
            "cargo check again, a handler's body changed".to_owned(),
            1.2,
        ),
        (
            "cargo check again, an event's field changed".to_owned(),
            1.2,
        ),
    ];
    let lines = names.into_iter().zip(ours.iter().zip(&theirs));
    Ok(lines
        .map(|((name, most), (ours, theirs))| {
            let name = format!("{name} | the expansion by hand");
            Line::compare(name, "s", Goal::AtMost(most), ours, theirs)
        })
        .collect())
}

/// Both crates do the same when they run: same registrations, keys, payloads, rows.
async fn check(bench: &Bench, ours: &Project, theirs: &Project, aggregates: usize) -> Result<()> {
    bench
        .progress
        .say("running the crates whose check is measured");
    let (ours, theirs) = (ours.describe().await?, theirs.describe().await?);
    let count = |kind: &str| ours.lines().filter(|line| line.starts_with(kind)).count();
    let expected = [
        ("aggregate ", 1),
        ("event ", 4),
        ("handler ", 2),
        ("loaded ", 1),
        ("handled ", 2),
        ("stored ", 4),
    ];
    for (kind, each) in expected {
        let (found, expected) = (count(kind), aggregates * each);
        ensure!(
            found == expected,
            "{found} lines of {kind:?}, not {expected}"
        );
    }
    let differing = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
    if let Some((ours, theirs)) = differing {
        anyhow::bail!("the crates differ:\n  ours:    {ours}\n  by hand: {theirs}");
    }
    ensure!(
        ours.len() == theirs.len(),
        "one crate says more than the other"
    );
    Ok(())
}

fn sides(samples: Vec<Vec<Samples>>) -> Result<[Vec<Samples>; 2]> {
    samples
        .try_into()
        .ok()
        .context("a contestant told no figure")
}

/// Lets cargo check one of the crates.
struct Compiler {
    project: Project,
    edit: Edit,
}

impl Compiler {
    fn new(project: Project) -> Self {
        Self {
            project,
            edit: Edit::default(),
        }
    }
}

#[async_trait]
impl Contestant for Compiler {
    fn name(&self) -> String {
        format!("cargo check, {}", self.project.name())
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.edit = self.edit.next();
        self.project.forget().await?;
        let cold = self.project.check().await?;
        self.project.edit(|text| self.edit.handler(text))?;
        let handler = self.project.check().await?;
        self.project.edit(|text| self.edit.event(text))?;
        let event = self.project.check().await?;
        Ok(vec![cold, handler, event])
    }
}
