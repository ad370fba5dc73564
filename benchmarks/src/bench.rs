use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::Cli;
use crate::postgres::Server;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Full,
    Quick,
    /// Just enough to see that it runs.
    Tiny,
}

/// How many rows a tiny run has at most.
const TINY_ROWS: i64 = 2_000;

/// What all sections share.
pub(crate) struct Bench {
    pub(crate) server: Server,
    /// The program that runs the peers.
    pub(crate) peers: Option<PathBuf>,
    pub(crate) workspace: PathBuf,
    pub(crate) rounds: usize,
    scale: Scale,
    pub(crate) progress: Progress,
}

impl Bench {
    pub(crate) fn new(cli: &Cli) -> Result<Self> {
        let scale = match (cli.tiny, cli.quick) {
            (true, _) => Scale::Tiny,
            (_, true) => Scale::Quick,
            _ => Scale::Full,
        };
        let rounds = cli.rounds.unwrap_or(match scale {
            Scale::Full => 5,
            Scale::Quick => 2,
            Scale::Tiny => 1,
        });
        Ok(Self {
            server: Server::at(&cli.postgres, &cli.prefix)?,
            peers: cli.peers.clone(),
            workspace: cli.workspace.clone(),
            rounds: rounds.into(),
            scale,
            progress: Progress::new(),
        })
    }

    /// A size of a full run, or of a quick one.
    pub(crate) const fn size<T: Copy>(&self, full: T, quick: T) -> T {
        match self.scale {
            Scale::Full => full,
            Scale::Quick | Scale::Tiny => quick,
        }
    }

    /// Whether this is only a first look.
    pub(crate) fn is_quick(&self) -> bool {
        self.scale != Scale::Full
    }

    /// Whether only what it takes to see that a section runs is to be done.
    pub(crate) fn is_tiny(&self) -> bool {
        self.scale == Scale::Tiny
    }

    /// How many rows a table has.
    pub(crate) fn rows(&self, full: i64, quick: i64) -> i64 {
        match self.is_tiny() {
            true => quick.min(TINY_ROWS),
            false => self.size(full, quick),
        }
    }

    /// How long something takes that is measured for a time of its own.
    pub(crate) fn seconds(&self, full: u64, quick: u64) -> Duration {
        match self.is_tiny() {
            true => Duration::from_millis(100),
            false => Duration::from_secs(self.size(full, quick)),
        }
    }

    /// How long a side works in a round where it works for a time.
    pub(crate) const fn span(&self) -> Duration {
        match self.scale {
            Scale::Full => Duration::from_secs(2),
            Scale::Quick => Duration::from_millis(600),
            Scale::Tiny => Duration::from_millis(100),
        }
    }
}

/// Who works at the moment, on a terminal; nothing elsewhere.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, target());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    pub(crate) fn show(&self, what: &str, round: usize, rounds: usize) {
        let round = match round {
            0 => "warming up".to_owned(),
            _ => format!("round {round} of {rounds}"),
        };
        self.0.set_message(format!("{what}, {round}"));
    }

    /// Says what is being done outside of rounds.
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}
