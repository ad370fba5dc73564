//! Compares what the contexts' tables, the events and the inbox say, and shows it.

use std::collections::HashMap;

use anyhow::Context;
use comfy_table::{Table, presets};
use serde::Serialize;

use super::intake::Refusal;

/// What only this run knows, as the database does not keep it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ThisRun {
    pub(crate) orders_read: usize,
    pub(crate) orders_refused: usize,
    pub(crate) orders_placed: u64,
    pub(crate) orders_already_placed: u64,
    pub(crate) messages_published: u64,
    pub(crate) messages_repeated_on_purpose: u64,
    pub(crate) duplicates_absorbed: u64,
    pub(crate) relay_restarts: u64,
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Reconciliation {
    balanced: bool,
    database: String,
    this_run: ThisRun,
    refused_lines: Vec<Refusal>,
    totals: Totals,
    checks: Vec<Check>,
}

/// What the database holds, of this run and all earlier ones.
#[derive(Debug, Serialize)]
struct Totals {
    orders_placed: i64,
    orders_confirmed: i64,
    orders_cancelled: i64,
    orders_open: i64,
    orders_paid: i64,
    payments_declined: i64,
    payments_refunded: i64,
    orders_reserved: i64,
    stock_rejected: i64,
    stock_released: i64,
    events_committed: i64,
    events_published: i64,
    events_handled: i64,
    captured_cents: i64,
    refunded_cents: i64,
    reserved_pieces: i64,
    released_pieces: i64,
}

/// Two figures that must be equal.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    left: i64,
    right: i64,
    balanced: bool,
}

impl Reconciliation {
    /// Compares the books' figures.
    pub(crate) fn new(
        database: String,
        this_run: ThisRun,
        refused_lines: Vec<Refusal>,
        books: Vec<(String, i64)>,
    ) -> anyhow::Result<Self> {
        let books = Books(books.into_iter().collect());
        let totals = books.totals()?;
        let known = i64::try_from(this_run.orders_placed + this_run.orders_already_placed)?;
        let accepted = i64::try_from(this_run.orders_read - this_run.orders_refused)?;
        let mut checks = books.checks(&totals)?;
        checks.insert(
            0,
            Check::new(
                "good orders of the file = placed now or before",
                accepted,
                known,
            ),
        );
        Ok(Self {
            balanced: checks.iter().all(|check| check.balanced),
            database,
            this_run,
            refused_lines,
            totals,
            checks,
        })
    }

    /// Whether everything balances.
    pub(crate) fn is_balanced(&self) -> bool {
        self.balanced
    }

    /// The tables for people, or the same as JSON for machines.
    pub(crate) fn print(&self, json: bool) -> anyhow::Result<String> {
        if json {
            return Ok(serde_json::to_string_pretty(self)?);
        }
        let verdict = if self.balanced {
            "Everything balances."
        } else {
            "IT DOES NOT BALANCE: see the lines marked NO."
        };
        Ok(format!(
            "{}\n{}\n{verdict}",
            self.figures(),
            self.comparison()
        ))
    }

    fn figures(&self) -> Table {
        let (run, totals) = (&self.this_run, &self.totals);
        let mut table = new_table(["", "this run", "in the database"]);
        let mut row = |name: &str, run: Option<u64>, total: Option<String>| {
            table.add_row([
                name.to_owned(),
                run.map(|count| count.to_string()).unwrap_or_default(),
                total.unwrap_or_default(),
            ]);
        };
        let count = |count: i64| Some(count.to_string());
        row("orders read", Some(run.orders_read as u64), None);
        row("orders refused", Some(run.orders_refused as u64), None);
        row(
            "orders placed before",
            Some(run.orders_already_placed),
            None,
        );
        row(
            "orders placed",
            Some(run.orders_placed),
            count(totals.orders_placed),
        );
        row("  confirmed", None, count(totals.orders_confirmed));
        row("  cancelled", None, count(totals.orders_cancelled));
        row("orders paid", None, count(totals.orders_paid));
        row("  declined", None, count(totals.payments_declined));
        row("  refunded", None, count(totals.payments_refunded));
        row("orders reserved", None, count(totals.orders_reserved));
        row("  rejected", None, count(totals.stock_rejected));
        row("  released", None, count(totals.stock_released));
        row("events committed", None, count(totals.events_committed));
        row(
            "events published",
            Some(run.messages_published),
            count(totals.events_published),
        );
        row("events handled", None, count(totals.events_handled));
        row(
            "sent twice on purpose",
            Some(run.messages_repeated_on_purpose),
            None,
        );
        row("duplicates absorbed", Some(run.duplicates_absorbed), None);
        row("relay restarts", Some(run.relay_restarts), None);
        row("money captured", None, Some(money(totals.captured_cents)));
        row("money refunded", None, Some(money(totals.refunded_cents)));
        row("pieces reserved", None, count(totals.reserved_pieces));
        row("pieces released", None, count(totals.released_pieces));
        table
    }

    fn comparison(&self) -> Table {
        let mut table = new_table(["must be equal", "left", "right", "balances"]);
        for check in &self.checks {
            let verdict = if check.balanced { "yes" } else { "NO" };
            table.add_row([
                check.name,
                &check.left.to_string(),
                &check.right.to_string(),
                verdict,
            ]);
        }
        table
    }
}

impl Check {
    fn new(name: &'static str, left: i64, right: i64) -> Self {
        Self {
            name,
            left,
            right,
            balanced: left == right,
        }
    }
}

/// The figures of `sql/books.sql` by name.
struct Books(HashMap<String, i64>);

impl Books {
    fn get(&self, name: &'static str) -> anyhow::Result<i64> {
        self.0
            .get(name)
            .copied()
            .with_context(|| format!("the books hold no figure {name}"))
    }

    fn totals(&self) -> anyhow::Result<Totals> {
        Ok(Totals {
            orders_placed: self.get("orders")?,
            orders_confirmed: self.get("confirmed")?,
            orders_cancelled: self.get("cancelled")?,
            orders_open: self.get("open")?,
            orders_paid: self.get("captured")? - self.get("refunded")?,
            payments_declined: self.get("declined")?,
            payments_refunded: self.get("refunded")?,
            orders_reserved: self.get("reserved")? - self.get("released")?,
            stock_rejected: self.get("rejected")?,
            stock_released: self.get("released")?,
            events_committed: self.get("events")?,
            events_published: self.get("published")?,
            events_handled: self.get("handled")?,
            captured_cents: self.get("captured_cents")?,
            refunded_cents: self.get("refunded_cents")?,
            reserved_pieces: self.get("reserved_pieces")?,
            released_pieces: self.get("released_pieces")?,
        })
    }

    fn checks(&self, totals: &Totals) -> anyhow::Result<Vec<Check>> {
        let kept_cents = totals.captured_cents - totals.refunded_cents;
        let kept_pieces = totals.reserved_pieces - totals.released_pieces;
        Ok(vec![
            Check::new(
                "orders confirmed + cancelled = orders placed",
                totals.orders_confirmed + totals.orders_cancelled,
                totals.orders_placed,
            ),
            Check::new(
                "orders paid = orders confirmed",
                totals.orders_paid,
                totals.orders_confirmed,
            ),
            Check::new(
                "orders reserved = orders confirmed",
                totals.orders_reserved,
                totals.orders_confirmed,
            ),
            Check::new(
                "cents: captured - refunded = confirmed orders",
                kept_cents,
                self.get("confirmed_cents")?,
            ),
            Check::new(
                "cents: captured - refunded = spent on accounts",
                kept_cents,
                self.get("spent_cents")?,
            ),
            Check::new(
                "pieces: reserved - released = confirmed orders",
                kept_pieces,
                self.get("confirmed_pieces")?,
            ),
            Check::new(
                "pieces: reserved - released = gone from shelves",
                kept_pieces,
                self.get("taken_pieces")?,
            ),
            Check::new(
                "events published = events committed",
                totals.events_published,
                totals.events_committed,
            ),
            Check::new(
                "inbox rows = events times their consumers",
                totals.events_handled,
                self.get("to_handle")?,
            ),
            // Placed, answered by inventory, answered by payment: each once.
            Check::new(
                "changes of orders = 3 for each order",
                self.get("order_changes")?,
                3 * totals.orders_placed,
            ),
            Check::new(
                "orders whose events tell another story = 0",
                self.get("wrong_orders")?,
                0,
            ),
            Check::new(
                "shelves that differ from events or orders = 0",
                self.get("wrong_shelves")?,
                0,
            ),
            Check::new(
                "accounts that differ from events or orders = 0",
                self.get("wrong_accounts")?,
                0,
            ),
            Check::new(
                "events missed or handled twice by a consumer = 0",
                self.get("wrong_handlings")?,
                0,
            ),
        ])
    }
}

fn new_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    table
}

fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
