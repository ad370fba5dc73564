mod commit;
mod compile;
mod inbox;
mod instances;
mod latency;
mod memory;
mod relay;
mod snapshot;
mod sqlite;
mod wakeup;

use anyhow::{Result, bail};
use futures_util::future::BoxFuture;

use crate::bench::Bench;
use crate::line::Line;

pub(crate) use self::relay::{Nowhere, fill, start_anew};

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
    Section {
        name: "snapshot",
        about: "a relay while an old snapshot is held",
        run: |bench| Box::pin(snapshot::run(bench)),
    },
    Section {
        name: "latency",
        about: "from a commit to its publication",
        run: |bench| Box::pin(latency::run(bench)),
    },
    Section {
        name: "wakeup",
        about: "what waking the relay costs commits",
        run: |bench| Box::pin(wakeup::run(bench)),
    },
    Section {
        name: "inbox",
        about: "handling messages, and duplicates of them",
        run: |bench| Box::pin(inbox::run(bench)),
    },
    Section {
        name: "memory",
        about: "what a relay takes while it drains a backlog",
        run: |bench| Box::pin(memory::run(bench)),
    },
    Section {
        name: "instances",
        about: "four relays beside one",
        run: |bench| Box::pin(instances::run(bench)),
    },
    Section {
        name: "sqlite",
        about: "the same on SQLite",
        run: |bench| Box::pin(sqlite::run(bench)),
    },
    Section {
        name: "compile",
        about: "checking a crate that uses the attributes",
        run: |bench| Box::pin(compile::run(bench)),
    },
];

/// It compiles all dependencies first.
const NO_FIRST_LOOK: &str = "compile";

/// Those of these names; without any, all that fit in the time.
pub(crate) fn chosen(names: &[String], is_quick: bool) -> Result<Vec<&'static Section>> {
    let known = |name: &String| ALL.iter().any(|section| section.name == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<_> = ALL.iter().map(|section| section.name).collect();
        bail!(
            "there is no section {unknown}; there are {}",
            all.join(", ")
        );
    }
    let is_chosen = |section: &&Section| match names.is_empty() {
        true => !(is_quick && section.name == NO_FIRST_LOOK),
        false => names.iter().any(|name| name == section.name),
    };
    if names.is_empty() && is_quick {
        eprintln!("the section {NO_FIRST_LOOK} takes minutes: --only {NO_FIRST_LOOK} runs it");
    }
    Ok(ALL.iter().filter(is_chosen).collect())
}
