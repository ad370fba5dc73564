mod commit;
mod relay;

use anyhow::{Result, bail};
use futures_util::future::BoxFuture;

use crate::bench::Bench;
use crate::line::Line;

/// A group of pairs that share their preparations.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Bench) -> BoxFuture<'_, Result<Vec<Line>>>,
}

/// All sections, in the order in which they run.
pub(crate) const ALL: &[Section] = &[
    Section {
        name: "commit",
        about: "changing aggregates with their events",
        run: |bench| Box::pin(commit::run(bench)),
    },
    Section {
        name: "relay",
        about: "draining a backlog",
        run: |bench| Box::pin(relay::run(bench)),
    },
];

/// Those of these names; all without any.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static Section>> {
    let known = |name: &String| ALL.iter().any(|section| section.name == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<_> = ALL.iter().map(|section| section.name).collect();
        bail!(
            "there is no section {unknown}; there are {}",
            all.join(", ")
        );
    }
    let is_chosen =
        |section: &&Section| names.is_empty() || names.iter().any(|n| n == section.name);
    Ok(ALL.iter().filter(is_chosen).collect())
}
