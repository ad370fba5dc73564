//! The live table, or lines where nobody sees a table.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};

use super::fleet::Process;
use super::status::Status;

/// How often a line is printed.
const LINE_EVERY: Duration = Duration::from_secs(3);

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// A live table, or lines where there is no terminal; then the books.
    Everything,
    /// Lines alone.
    Lines,
    /// Nothing.
    Nothing,
}

/// Shows a run while it goes on.
pub(super) struct Show {
    looks: Looks,
    /// Hidden where there is no terminal.
    table: ProgressBar,
    since: Instant,
    last_line: Option<Instant>,
}

/// What there is to show.
pub(super) struct Scene<'a> {
    pub(super) processes: &'a [Process],
    pub(super) broker: &'a str,
    pub(super) broker_is_up: bool,
    pub(super) broker_kills: u32,
    pub(super) status: &'a Status,
}

impl Show {
    /// Begins.
    pub(super) fn new(looks: Looks) -> Self {
        let on_terminal = looks == Looks::Everything && std::io::stderr().is_terminal();
        let table = match on_terminal {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        table.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self {
            looks,
            table,
            since: Instant::now(),
            last_line: None,
        }
    }

    /// Whether the books are to be printed, too.
    pub(super) fn has_books(&self) -> bool {
        self.looks == Looks::Everything
    }

    /// Says what happened.
    pub(super) fn say(&self, what: &str) {
        let seconds = self.since.elapsed().as_secs_f64();
        if self.looks != Looks::Nothing {
            self.table.suspend(|| println!("{seconds:6.1} s  {what}"));
        }
    }

    /// Shows how far it is.
    pub(super) fn update(&mut self, scene: &Scene<'_>) {
        if !self.table.is_hidden() {
            self.table.set_message(scene.table().to_string());
            self.table.tick();
        } else if self.last_line.is_none_or(|at| at.elapsed() > LINE_EVERY) {
            self.last_line = Some(Instant::now());
            self.say(&scene.line());
        }
    }

    /// Leaves the last state standing.
    pub(super) fn finish(&self, scene: &Scene<'_>) {
        self.table.finish_and_clear();
        if self.looks == Looks::Everything {
            println!("{}", scene.table());
        }
    }
}

impl Scene<'_> {
    fn line(&self) -> String {
        let (orders, status) = (&self.status.orders, self.status);
        let away: Vec<&str> = self
            .processes
            .iter()
            .filter(|one| one.pid().is_none() && one.done_at().is_none())
            .map(|one| one.name)
            .chain((!self.broker_is_up).then_some(self.broker))
            .collect();
        let away = match away.is_empty() {
            true => String::new(),
            false => format!("; away: {}", away.join(", ")),
        };
        format!(
            "orders {} placed, {} confirmed, {} cancelled; {} events, {} published; {} of {} handled, {} duplicates, {} parked{away}",
            orders.placed,
            orders.confirmed,
            orders.cancelled,
            status.sum(|one| one.events),
            status.sum(|one| one.published),
            status.sum(|one| one.handled),
            status.sum(|one| one.to_handle),
            status.sum(|one| one.duplicates),
            status.sum(|one| one.parked_in_outbox + one.parked_in_inbox),
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_BORDERS_ONLY).set_header([
            "process",
            "state",
            "kills",
            "orders",
            "events",
            "published",
            "handled",
            "duplicates",
            "parked",
        ]);
        for process in self.processes {
            table.add_row(self.row(process));
        }
        let up = if self.broker_is_up { "up" } else { "away" };
        table.add_row([
            self.broker.to_owned(),
            up.to_owned(),
            self.broker_kills.to_string(),
        ]);
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    fn row(&self, process: &Process) -> Vec<String> {
        let state = match (process.pid(), process.done_at()) {
            (Some(pid), _) => format!("pid {pid}"),
            (None, Some(_)) => "done".to_owned(),
            (None, None) => "away".to_owned(),
        };
        let mut row = vec![process.name.to_owned(), state, process.kills.to_string()];
        let (orders, status) = (&self.status.orders, self.status);
        let none = String::new;
        let figures = match process.name {
            "place" => vec![format!("{} placed", orders.placed)],
            "relay" => vec![
                none(),
                none(),
                status.sum(|one| one.published).to_string(),
                none(),
                none(),
                status.sum(|one| one.parked_in_outbox).to_string(),
            ],
            name => match status.services.iter().find(|one| one.name == name) {
                None => Vec::new(),
                Some(one) => vec![
                    match name {
                        "ordering" => format!("{} ok, {} not", orders.confirmed, orders.cancelled),
                        _ => none(),
                    },
                    one.events.to_string(),
                    one.published.to_string(),
                    one.handled.to_string(),
                    one.duplicates.to_string(),
                    one.parked_in_inbox.to_string(),
                ],
            },
        };
        row.extend(figures);
        row
    }
}
