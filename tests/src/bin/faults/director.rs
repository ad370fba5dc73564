use std::process::ExitCode;
use std::time::Duration;

use outbox_tests::faults::{FaultDb, Sabotage, soak as soaked};
use serde::Deserialize;
use sqlx::{Postgres, Sqlite};

use crate::cells::{Brokers, Cell};
use crate::report::{CellName, HARNESS, Line, Run, tell};

/// What is to be done.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    /// Parts of the ids of the cells that are wanted; all of them if there is none.
    pub(crate) only: Vec<String>,
    pub(crate) database: Option<String>,
    pub(crate) messages: Option<u32>,
    pub(crate) minutes: f64,
    pub(crate) seed: Option<u64>,
    pub(crate) sabotage: Option<Sabotage>,
    /// Only tells which cells there are.
    pub(crate) list: bool,
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
            list: false,
        }
    }
}

/// Runs the matrix, or what is wanted of it; fails if a run is not clean.
pub(crate) async fn matrix(options: &str) -> ExitCode {
    let options: Options = match serde_json::from_str(options) {
        Ok(options) => options,
        Err(error) => return refused(&error.to_string()),
    };
    let mut cells = Cell::all();
    let ids: Vec<_> = cells.iter().map(Cell::id).collect();
    let is_unknown = |only: &&String| !ids.iter().any(|id| id.contains(only.as_str()));
    if let Some(unknown) = options.only.iter().find(is_unknown) {
        return refused(&format!(
            "there is no cell `{unknown}`; there are {}",
            ids.join(", ")
        ));
    }
    cells.retain(|cell| cell.is_wanted(&options));
    if options.list {
        cells.iter().for_each(|cell| println!("{}", cell.id()));
        return ExitCode::SUCCESS;
    }
    if cells.is_empty() {
        return refused("no cell is on that database; there are sqlite and postgres");
    }
    tell(&Line::Runs { runs: cells.len() });
    let (mut clean, mut brokers) = (true, Brokers::default());
    for cell in cells {
        clean &= cell.run(&options, &mut brokers).await;
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

async fn soaked_for<DB: FaultDb>(how_long: Duration, options: &Options) -> bool {
    let cell = CellName {
        fault: "soak".to_owned(),
        database: DB::KEY,
        broker: HARNESS,
    };
    let run = Run::new(cell, options.messages.unwrap_or(1), options);
    let watcher = |standing| run.progress(standing);
    let ended = soaked::<DB>(run.settings.clone(), how_long, &watcher).await;
    run.end(ended)
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
