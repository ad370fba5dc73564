//! Compares what the contexts' tables, the events and the inbox say.

use std::collections::HashMap;

use anyhow::Context;
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
    pub(super) balanced: bool,
    pub(super) database: String,
    pub(super) this_run: ThisRun,
    pub(super) refused_lines: Vec<Refusal>,
    pub(super) totals: Totals,
    pub(super) checks: Vec<Check>,
}

/// What the database holds, of this run and all earlier ones.
#[derive(Debug, Serialize)]
pub(super) struct Totals {
    pub(super) orders_placed: i64,
    pub(super) orders_confirmed: i64,
    pub(super) orders_cancelled: i64,
    pub(super) orders_open: i64,
    pub(super) orders_paid: i64,
    pub(super) payments_declined: i64,
    pub(super) payments_refunded: i64,
    pub(super) orders_reserved: i64,
    pub(super) stock_rejected: i64,
    pub(super) stock_released: i64,
    pub(super) events_committed: i64,
    pub(super) events_published: i64,
    pub(super) events_handled: i64,
    pub(super) captured_cents: i64,
    pub(super) refunded_cents: i64,
    pub(super) reserved_pieces: i64,
    pub(super) released_pieces: i64,
}

/// Two figures that must be equal.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) left: i64,
    pub(super) right: i64,
    pub(super) balanced: bool,
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
