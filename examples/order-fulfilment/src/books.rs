//! Compares what the contexts' tables, the events and the inbox say.
//!
//! `sql/books.sql` takes the figures from one database, or from one session into which the contents of
//! several were brought together.

use std::collections::HashMap;

use anyhow::Context;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// The query of all figures, by their names, for SQLite and PostgreSQL.
pub const SQL: &str = include_str!("../sql/books.sql");

/// What the database holds, of this run and all earlier ones.
#[derive(Debug, Serialize)]
pub struct Totals {
    pub orders_placed: i64,
    pub orders_confirmed: i64,
    pub orders_cancelled: i64,
    pub orders_open: i64,
    pub orders_paid: i64,
    pub payments_declined: i64,
    pub payments_refunded: i64,
    pub orders_reserved: i64,
    pub stock_rejected: i64,
    pub stock_released: i64,
    pub events_committed: i64,
    pub events_published: i64,
    pub events_handled: i64,
    pub captured_cents: i64,
    pub refunded_cents: i64,
    pub reserved_pieces: i64,
    pub released_pieces: i64,
}

/// Two figures that must be equal.
#[derive(Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub left: i64,
    pub right: i64,
    pub balanced: bool,
}

impl Check {
    /// Compares.
    pub fn new(name: &'static str, left: i64, right: i64) -> Self {
        Self {
            name,
            left,
            right,
            balanced: left == right,
        }
    }
}

/// The figures by name.
#[derive(Debug)]
pub struct Books(HashMap<String, i64>);

impl Books {
    /// Takes what [`SQL`] gave.
    pub fn new(figures: Vec<(String, i64)>) -> Self {
        Self(figures.into_iter().collect())
    }

    fn get(&self, name: &'static str) -> anyhow::Result<i64> {
        self.0
            .get(name)
            .copied()
            .with_context(|| format!("the books hold no figure {name}"))
    }

    /// What is there.
    pub fn totals(&self) -> anyhow::Result<Totals> {
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

    /// What must be equal.
    pub fn checks(&self, totals: &Totals) -> anyhow::Result<Vec<Check>> {
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

/// The comparisons for people.
pub fn comparison(checks: &[Check]) -> Table {
    let mut table = new_table(["must be equal", "left", "right", "balances"]);
    for check in checks {
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

/// An empty table with a column of words and others of figures.
pub fn new_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
