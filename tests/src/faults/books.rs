use std::collections::BTreeSet;

use sqlx::Pool;

use super::database::FaultDb;
use super::verdict::Verdict;
use crate::Fixture;

/// The events that have an effect: those of the writers, and what the ledger makes of each.
const TYPES: &str = "('account.deposited', 'ledger.entered')";

/// How far the work has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Committed events that are to have an effect.
    pub messages: i64,
    /// Effects.
    pub effects: i64,
}

/// How many different effects there are.
const EFFECTS: &str = "SELECT count(*) FROM (SELECT DISTINCT consumer, message_id FROM effect) e";

/// Looks how far the work has come.
///
/// # Errors
/// If the database does not answer.
pub async fn standing<DB: FaultDb>(pool: &Pool<DB>) -> Result<Standing, sqlx::Error> {
    let number = |sql: String| async move { DB::try_number(pool, &sql).await };
    // In this order an effect is never seen before its event. One that is there twice stands for
    // no other.
    let effects = number(EFFECTS.to_owned()).await?;
    let messages = number(format!("SELECT count(*) FROM ({}) e", events::<DB>())).await?;
    Ok(Standing { messages, effects })
}

/// Whether writers may go on, as not too much waits for its effect; nothing if they are to end.
///
/// # Errors
/// If the database does not answer.
pub async fn room<DB: FaultDb>(pool: &Pool<DB>) -> Result<Option<bool>, sqlx::Error> {
    let writing = DB::try_number(pool, "SELECT writing FROM control").await?;
    if writing == 0 {
        return Ok(None);
    }
    let most = DB::try_number(pool, "SELECT most_behind FROM control").await?;
    let Standing { messages, effects } = standing(pool).await?;
    Ok(Some(messages - effects < most))
}

/// Counts what was promised, by queries that share nothing with the runtime.
pub async fn balance<DB: FaultDb>(fixture: &Fixture<DB>) -> Verdict {
    let events = events::<DB>();
    let number = async |sql: &str| fixture.number(sql).await;
    let messages = number(&format!("SELECT count(*) FROM ({events}) e")).await;
    let lost = number(&format!(
        "SELECT count(*) FROM ({events}) e
         WHERE NOT EXISTS (SELECT 1 FROM effect f WHERE f.message_id = e.id)"
    ))
    .await;
    let duplicated = number(
        "SELECT CAST(coalesce(sum(times - 1), 0) AS BIGINT) FROM
            (SELECT count(*) AS times FROM effect GROUP BY consumer, message_id) t",
    )
    .await;
    let out_of_order = number(
        "SELECT count(*) FROM
            (SELECT sequence, max(sequence) OVER (PARTITION BY consumer, aggregate_id ORDER BY id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest FROM effect) f
         WHERE sequence < highest",
    )
    .await;
    let without_event = number(&format!(
        "SELECT count(*) FROM effect WHERE message_id NOT IN (SELECT id FROM ({events}) e)"
    ))
    .await;
    let of = |event_type: &str| {
        format!("(SELECT count(*) FROM ({events}) e WHERE e.event_type = '{event_type}')")
    };
    let sum = |column: &str, table: &str| {
        format!("(SELECT CAST(coalesce(sum({column}), 0) AS BIGINT) FROM {table})")
    };
    let entered =
        "(SELECT count(DISTINCT message_id) FROM effect WHERE consumer = 'faults.ledger')";
    let mut torn = without_event;
    for (one, other) in [
        // Changes of accounts, and the events that tell of them.
        (sum("cents", "account"), of("account.deposited")),
        // Changes of the ledger, the events that tell of them, and the effects beside them.
        (sum("entries", "ledger"), of("ledger.entered")),
        (entered.to_owned(), of("ledger.entered")),
    ] {
        torn += number(&format!("SELECT abs({one} - {other})")).await;
    }
    Verdict {
        messages,
        lost,
        duplicated,
        out_of_order,
        torn,
        ..Verdict::default()
    }
}

/// Messages that nothing will happen to until somebody decides, and why.
pub async fn dead<DB: FaultDb>(fixture: &Fixture<DB>) -> Vec<String> {
    let mut dead = Vec::new();
    for table in ["outbox_parked", "inbox_parked"] {
        let sql = format!(
            "SELECT 'a message is dead in {table} after ' || CAST(attempts AS TEXT)
                || ' attempts: ' || coalesce(last_cause, 'no cause')
             FROM {table} WHERE state = 'dead'"
        );
        dead.extend(fixture.texts(&sql).await);
    }
    dead
}

/// How many of these messages nobody committed.
pub async fn uncommitted<DB: FaultDb>(
    fixture: &Fixture<DB>,
    message_ids: &BTreeSet<String>,
) -> usize {
    let ids = format!("SELECT {} FROM outbox_message", DB::MESSAGE_ID);
    let committed: BTreeSet<_> = fixture.texts(&ids).await.into_iter().collect();
    message_ids.difference(&committed).count()
}

/// The events that are to have an effect, also those that retention has archived.
fn events<DB: FaultDb>() -> String {
    let of = |table: &str| {
        format!(
            "SELECT {} AS id, event_type FROM {table} WHERE event_type IN {TYPES}",
            DB::MESSAGE_ID
        )
    };
    format!(
        "{} UNION ALL {}",
        of("outbox_message"),
        of("outbox_message_archive")
    )
}
