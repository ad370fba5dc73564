use std::env;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use outbox_tests::faults::{
    Fault, FaultDb, NotExercised, STANDSTILL, Sabotage, Settings, Standing, Verdict, soak as soaked,
};
use serde::{Deserialize, Serialize};
use sqlx::{Postgres, Sqlite};

/// How often the progress of a run is told at most.
const TELL: Duration = Duration::from_millis(200);

/// What is to be done.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    only: Vec<String>,
    database: Option<String>,
    messages: Option<u32>,
    minutes: f64,
    seed: Option<u64>,
    sabotage: Option<Sabotage>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            database: None,
            messages: None,
            minutes: 10.0,
            seed: None,
            sabotage: None,
        }
    }
}

/// A line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "line", rename_all = "snake_case")]
enum Line<'a> {
    /// How many runs there will be.
    Runs {
        runs: usize,
    },
    Begin {
        fault: &'a str,
        database: &'a str,
        messages: u32,
        seed: u64,
    },
    Progress {
        messages: i64,
        effects: i64,
    },
    End {
        fault: &'a str,
        database: &'a str,
        seed: u64,
        clean: bool,
        #[serde(flatten)]
        verdict: &'a Verdict,
    },
    NotExercised {
        fault: &'a str,
        database: &'a str,
        why: &'a str,
    },
}

/// Runs the matrix, or what is wanted of it; fails if a run is not clean.
pub(crate) async fn matrix(options: &str) -> ExitCode {
    let options: Options = match serde_json::from_str(options) {
        Ok(options) => options,
        Err(error) => return refused(&error.to_string()),
    };
    let mut faults = Fault::all();
    let names: Vec<_> = faults.iter().map(|fault| fault.name()).collect();
    if let Some(unknown) = options.only.iter().find(|name| !names.contains(name)) {
        return refused(&format!(
            "there is no fault `{unknown}`; there are {}",
            names.join(", ")
        ));
    }
    if !options.only.is_empty() {
        faults.retain(|fault| options.only.contains(&fault.name()));
    }
    let on = |key: &str| options.database.as_deref().is_none_or(|one| one == key);
    let databases = usize::from(on(Sqlite::KEY)) + usize::from(on(Postgres::KEY));
    let runs = faults.len() * databases;
    if runs == 0 {
        return refused("there is no such database; there are sqlite and postgres");
    }
    tell(&Line::Runs { runs });
    let mut clean = true;
    for fault in faults {
        let messages = options.messages.unwrap_or(fault.messages());
        if on(Sqlite::KEY) {
            clean &= tried::<Sqlite>(fault, messages, &options).await;
        }
        if on(Postgres::KEY) {
            clean &= tried::<Postgres>(fault, messages, &options).await;
        }
    }
    code(clean)
}

/// Soaks one database after the other.
pub(crate) async fn soak(options: &str) -> ExitCode {
    let options: Options = match serde_json::from_str(options) {
        Ok(options) => options,
        Err(error) => return refused(&error.to_string()),
    };
    let on = |key: &str| options.database.as_deref().is_none_or(|one| one == key);
    let runs = usize::from(on(Sqlite::KEY)) + usize::from(on(Postgres::KEY));
    let Ok(how_long) = Duration::try_from_secs_f64(options.minutes * 60.0) else {
        return refused("the minutes have to be above zero");
    };
    tell(&Line::Runs { runs });
    let mut clean = true;
    if on(Sqlite::KEY) {
        clean &= soaked_for::<Sqlite>(how_long, &options).await;
    }
    if on(Postgres::KEY) {
        clean &= soaked_for::<Postgres>(how_long, &options).await;
    }
    code(clean)
}

async fn tried<DB: FaultDb>(fault: Fault, messages: u32, options: &Options) -> bool {
    let run = Run::new::<DB>(fault.name(), messages, options);
    let watcher = |standing| run.progress(standing);
    let ended = fault.run::<DB>(run.settings.clone(), &watcher).await;
    run.end(ended)
}

async fn soaked_for<DB: FaultDb>(how_long: Duration, options: &Options) -> bool {
    let run = Run::new::<DB>("soak".to_owned(), options.messages.unwrap_or(1), options);
    let watcher = |standing| run.progress(standing);
    let ended = soaked::<DB>(run.settings.clone(), how_long, &watcher).await;
    run.end(ended)
}

/// A fault on a database.
struct Run {
    fault: String,
    database: &'static str,
    settings: Settings,
    told: Mutex<Instant>,
}

impl Run {
    fn new<DB: FaultDb>(fault: String, messages: u32, options: &Options) -> Self {
        let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
        let run = Self {
            fault,
            database: DB::KEY,
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
            fault: &run.fault,
            database: run.database,
            messages,
            seed,
        });
        run
    }

    fn progress(&self, standing: Standing) {
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
    fn end(&self, ended: Result<Verdict, NotExercised>) -> bool {
        match ended {
            Ok(verdict) => {
                tell(&Line::End {
                    fault: &self.fault,
                    database: self.database,
                    seed: self.settings.seed,
                    clean: verdict.is_clean(),
                    verdict: &verdict,
                });
                verdict.is_clean()
            }
            Err(why) => {
                tell(&Line::NotExercised {
                    fault: &self.fault,
                    database: self.database,
                    why: &why.to_string(),
                });
                true
            }
        }
    }
}

fn tell(line: &Line<'_>) {
    let mut line = serde_json::to_vec(line).expect("a line is JSON");
    line.push(b'\n');
    let mut output = std::io::stdout().lock();
    // Nobody may be listening any more.
    let _ = output.write_all(&line).and_then(|()| output.flush());
}

fn refused(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(2)
}

fn code(clean: bool) -> ExitCode {
    match clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
