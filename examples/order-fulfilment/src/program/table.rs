use anyhow::Result;
use comfy_table::Table;
use order_fulfilment::books::{comparison, new_table};

use super::reconciliation::Reconciliation;

impl Reconciliation {
    /// The tables for people, or the same as JSON for machines.
    pub(crate) fn print(&self, json: bool) -> Result<String> {
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
            comparison(&self.checks)
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
}

fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
