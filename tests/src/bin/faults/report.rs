//! What the director tells: a line of JSON for each thing that happens.

use std::env;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use outbox_tests::faults::{NotExercised, STANDSTILL, Settings, Standing, Verdict};
use serde::Serialize;

use crate::director::Options;

/// The name of the harness's own broker.
pub(crate) const HARNESS: &str = "harness";
/// How often the progress of a run is told at most.
const TELL: Duration = Duration::from_millis(200);

/// A line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    /// How many runs there will be.
    Runs {
        runs: usize,
    },
    Begin {
        #[serde(flatten)]
        cell: &'a CellName,
        messages: u32,
        seed: u64,
    },
    Progress {
        messages: i64,
        effects: i64,
    },
    End {
        #[serde(flatten)]
        cell: &'a CellName,
        seed: u64,
        clean: bool,
        #[serde(flatten)]
        verdict: &'a Verdict,
    },
    NotExercised {
        #[serde(flatten)]
        cell: &'a CellName,
        why: &'a str,
    },
}

/// What is tried where.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CellName {
    pub(crate) fault: String,
    pub(crate) database: &'static str,
    /// [`HARNESS`], or a real one.
    pub(crate) broker: &'static str,
}

/// A run of a cell.
pub(crate) struct Run {
    cell: CellName,
    pub(crate) settings: Settings,
    told: Mutex<Instant>,
}

impl Run {
    pub(crate) fn new(cell: CellName, messages: u32, options: &Options) -> Self {
        let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
        let run = Self {
            cell,
            settings: Settings {
                program: env::current_exe().expect("we run from a file"),
                messages,
                seed,
                standstill: match options.sabotage {
                    None => STANDSTILL,
                    // What is lost never comes.
                    Some(_) => Duration::from_secs(10),
                },
                sabotage: options.sabotage,
            },
            told: Mutex::new(Instant::now()),
        };
        tell(&Line::Begin {
            cell: &run.cell,
            messages,
            seed,
        });
        run
    }

    pub(crate) fn progress(&self, standing: Standing) {
        let mut told = self.told.lock().expect("nothing panics here");
        if told.elapsed() > TELL {
            *told = Instant::now();
            tell(&Line::Progress {
                messages: standing.messages,
                effects: standing.effects,
            });
        }
    }

    /// Tells the end; whether nothing was wrong.
    pub(crate) fn end(&self, ended: Result<Verdict, NotExercised>) -> bool {
        match ended {
            Ok(verdict) => {
                tell(&Line::End {
                    cell: &self.cell,
                    seed: self.settings.seed,
                    clean: verdict.is_clean(),
                    verdict: &verdict,
                });
                verdict.is_clean()
            }
            Err(why) => {
                tell(&Line::NotExercised {
                    cell: &self.cell,
                    why: &why.to_string(),
                });
                true
            }
        }
    }
}

pub(crate) fn tell(line: &Line<'_>) {
    let mut line = serde_json::to_vec(line).expect("a line is JSON");
    line.push(b'\n');
    let mut output = std::io::stdout().lock();
    // Nobody may be listening any more.
    let _ = output.write_all(&line).and_then(|()| output.flush());
}
