//! The books of three databases, compared as if they were one.
//!
//! What the comparison needs is copied into temporary tables of one session, and there the very query
//! of the one-process example is run. No service may read another one's database; an auditor may.

use anyhow::Context;
use futures_util::TryStreamExt;
use order_fulfilment::BoundedContext;
use order_fulfilment::books::{self, Books, Check, Totals, comparison};
use serde::Serialize;
use sqlx::PgConnection;

use crate::database::{Server, name};
use crate::status::Status;

/// Shards are numbered anew, so that those of three databases do not meet.
const SHARDS: i32 = 64;

/// What the comparison came to.
#[derive(Debug, Serialize)]
pub(crate) struct Reconciliation {
    balanced: bool,
    /// Something was still under way, so the books could not balance yet.
    under_way: bool,
    duplicates_absorbed: i64,
    totals: Totals,
    checks: Vec<Check>,
}

impl Reconciliation {
    /// Reads the three databases and compares.
    pub(crate) async fn make(server: &Server) -> anyhow::Result<Self> {
        let mut readers = server.readers().await?;
        let status = Status::read(&mut readers).await?;
        let figures = figures(server, &mut readers)
            .await
            .context("the books can't be read")?;
        let books = Books::new(figures);
        let totals = books.totals()?;
        let mut checks = books.checks(&totals)?;
        checks.push(Check::new("messages parked = 0", status.parked(), 0));
        let duplicates = status.services.iter().map(|one| one.figures.duplicates);
        Ok(Self {
            balanced: checks.iter().all(|check| check.balanced),
            under_way: !status.drained,
            duplicates_absorbed: duplicates.sum(),
            totals,
            checks,
        })
    }

    /// Whether everything balances.
    pub(crate) fn is_balanced(&self) -> bool {
        self.balanced
    }

    /// Tables for people, or the same as JSON for machines.
    pub(crate) fn print(&self, json: bool) -> anyhow::Result<String> {
        if json {
            return Ok(serde_json::to_string_pretty(self)?);
        }
        let verdict = match (self.balanced, self.under_way) {
            (true, _) => "Everything balances.",
            (false, true) => "It does not balance yet: something is still under way.",
            (false, false) => "IT DOES NOT BALANCE: see the lines marked NO.",
        };
        let totals = &self.totals;
        Ok(format!(
            "{} orders placed, {} confirmed, {} cancelled; {} events, {} handlings, {} duplicates absorbed\n{}\n{verdict}",
            totals.orders_placed,
            totals.orders_confirmed,
            totals.orders_cancelled,
            totals.events_committed,
            totals.events_handled,
            self.duplicates_absorbed,
            comparison(&self.checks),
        ))
    }
}

async fn figures(
    server: &Server,
    readers: &mut [(BoundedContext, PgConnection)],
) -> anyhow::Result<Vec<(String, i64)>> {
    let mut session = server.connect(&name(BoundedContext::Ordering)).await?;
    sqlx::raw_sql(include_str!("../sql/books_session.sql"))
        .execute(&mut session)
        .await?;
    for ((context, reader), place) in readers.iter_mut().zip(0..) {
        let first_shard = place * SHARDS;
        copy(reader, &mut session, "outbox_message", &format!(
            "SELECT id, shard + {first_shard}, message_id, event_type, payload FROM outbox_message"
        )).await?;
        copy(
            reader,
            &mut session,
            "outbox_shard",
            &format!("SELECT shard + {first_shard}, position FROM outbox_shard"),
        )
        .await?;
        copy(
            reader,
            &mut session,
            "inbox_message",
            "SELECT consumer, message_id FROM inbox_message",
        )
        .await?;
        let (table, columns) = match context {
            BoundedContext::Ordering => (
                "ordering_orders",
                "id, customer_id, sku, quantity, total_cents, status, version",
            ),
            BoundedContext::Inventory => ("inventory_stock", "sku, opening, on_hand"),
            BoundedContext::Payment => ("payment_accounts", "customer_id, spent_cents"),
        };
        copy(
            reader,
            &mut session,
            table,
            &format!("SELECT {columns} FROM {table}"),
        )
        .await?;
    }
    sqlx::raw_sql("ANALYZE pg_temp.ordering_orders, pg_temp.outbox_message, pg_temp.inbox_message")
        .execute(&mut session)
        .await?;
    Ok(sqlx::query_as(books::SQL).fetch_all(&mut session).await?)
}

/// Copies what a query gives in one database into a temporary table of a session in another.
async fn copy(
    from: &mut PgConnection,
    to: &mut PgConnection,
    table: &str,
    query: &str,
) -> sqlx::Result<()> {
    let mut rows = from
        .copy_out_raw(&format!("COPY ({query}) TO STDOUT"))
        .await?;
    let mut sink = to
        .copy_in_raw(&format!("COPY pg_temp.{table} FROM STDIN"))
        .await?;
    while let Some(bytes) = rows.try_next().await? {
        sink.send(bytes).await?;
    }
    sink.finish().await?;
    Ok(())
}
