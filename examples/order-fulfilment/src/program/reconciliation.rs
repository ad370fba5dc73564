//! What a run comes to.

use order_fulfilment::books::{Books, Check, Totals};
use order_fulfilment::intake::Refusal;
use serde::Serialize;

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

impl Reconciliation {
    /// Compares the books' figures.
    pub(crate) fn new(
        database: String,
        this_run: ThisRun,
        refused_lines: Vec<Refusal>,
        books: Vec<(String, i64)>,
    ) -> anyhow::Result<Self> {
        let books = Books::new(books);
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
