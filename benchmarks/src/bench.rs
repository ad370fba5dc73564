use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::Cli;
use crate::postgres::Server;

/// What all sections share.
pub(crate) struct Bench {
    pub(crate) server: Server,
    /// The program that runs the peers.
    pub(crate) peers: Option<PathBuf>,
    pub(crate) workspace: PathBuf,
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
    pub(crate) progress: Progress,
}

impl Bench {
    pub(crate) fn new(cli: &Cli) -> Result<Self> {
        let rounds = cli.rounds.unwrap_or(if cli.quick { 3 } else { 5 });
        Ok(Self {
            server: Server::at(&cli.postgres)?,
            peers: cli.peers.clone(),
            workspace: cli.workspace.clone(),
            rounds: rounds.into(),
            quick: cli.quick,
            progress: Progress::new(),
        })
    }

    /// A size of a full run, or of a quick one.
    pub(crate) const fn size<T: Copy>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// How long a side works in a round where it works for a time.
    pub(crate) const fn span(&self) -> Duration {
        self.size(Duration::from_secs(3), Duration::from_millis(600))
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
