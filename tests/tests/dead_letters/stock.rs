//! Parked rows as relays and consumers leave them, made by hand.

use std::fmt::Write;
use std::time::Duration;

use outbox_runtime::MessageId;
use outbox_runtime::dead_letters::{LetterId, Note, Side};
use outbox_runtime::domain::shard_of;
use outbox_tests::{Fixture, TestDatabase};
use uuid::Uuid;

/// JSON whose bytes any reformatting would change.
pub const PAYLOAD: &str = r#"{"n": 1.50,  "z":"é", "a":[1 ,2]}"#;

/// A parked row.
#[derive(Debug, Clone)]
pub struct Parked {
    pub id: LetterId,
    pub consumer: &'static str,
    pub aggregate: String,
    pub sequence: i64,
    pub state: &'static str,
    pub holds: bool,
    pub attempts: usize,
    pub cause: String,
    pub age: Duration,
    pub event_type: &'static str,
}

impl Parked {
    /// A row of the relay.
    pub fn relay(number: i64, aggregate: &str, state: &'static str) -> Self {
        Self {
            id: LetterId::new(Side::Relay, number),
            consumer: "",
            aggregate: aggregate.to_owned(),
            sequence: number,
            state,
            holds: true,
            attempts: usize::from(state != "waiting"),
            cause: "refused".to_owned(),
            age: Duration::ZERO,
            event_type: "Happened",
        }
    }

    /// A row of the inbox.
    pub fn inbox(
        number: i64,
        consumer: &'static str,
        aggregate: &str,
        state: &'static str,
    ) -> Self {
        Self {
            id: LetterId::new(Side::Inbox, number),
            consumer,
            ..Self::relay(number, aggregate, state)
        }
    }

    pub fn message_id(&self) -> MessageId {
        let side = u128::from(self.id.side() == Side::Inbox) << 64;
        let number = u128::from(self.id.number().unsigned_abs());
        MessageId::from_uuid(Uuid::from_u128(side | number))
    }
}

/// Puts rows into the tables, the positions of all shards behind them.
pub async fn fill<DB: TestDatabase>(fixture: &Fixture<DB>, rows: &[Parked]) {
    let is_sqlite = DB::NAME == "SQLite";
    let mut sql = String::from("UPDATE outbox_shard SET position = 1000000;");
    for row in rows {
        let hex = row.message_id().as_uuid().simple().to_string();
        let message_id = if is_sqlite {
            format!("X'{hex}'")
        } else {
            format!("'{hex}'::uuid")
        };
        let seconds = row.age.as_secs();
        let at = if is_sqlite {
            format!("CAST(unixepoch('subsec') * 1000 AS INTEGER) - {seconds} * 1000")
        } else {
            format!("clock_timestamp() - {seconds} * interval '1 second'")
        };
        let number = row.id.number();
        let (state, aggregate, sequence) = (row.state, &row.aggregate, row.sequence);
        let (event_type, attempts) = (row.event_type, row.attempts);
        let cause = match row.attempts {
            0 => "NULL".to_owned(),
            _ => format!("'{}'", row.cause.replace('\'', "''")),
        };
        let unit = if is_sqlite { "char(31)" } else { "chr(31)" };
        let lane = format!("'Thing' || {unit} || '{aggregate}'");
        let common = format!(
            "'{state}', {attempts}, {at}, {at}, {cause}, {message_id}, '{event_type}', 1, 'Thing', \
             '{aggregate}', {sequence}, 'c-{aggregate}', 'cause-7', 'shop', '00-trace-01', \
             '{{\"h\":\"1\"}}', '{PAYLOAD}'"
        );
        let columns = "state, attempts, parked_at, failing_since, last_cause, message_id, event_type, \
             schema_version, aggregate_type, aggregate_id, sequence, correlation_id, causation_id, \
             producer, traceparent, headers, payload";
        let table = match row.id.side() {
            Side::Relay => {
                let nobody = MessageId::from_uuid(Uuid::nil());
                let shard = shard_of(Some(("Thing", aggregate)), nobody);
                let next = if state == "failing" { &*at } else { "NULL" };
                let _ = write!(
                    sql,
                    "INSERT INTO outbox_parked (id, shard, lane, {columns}, next_attempt_at, occurred_at) \
                     VALUES ({number}, {shard}, {lane}, {common}, {next}, {at});"
                );
                "outbox_parked_attempt"
            }
            Side::Inbox => {
                let overriding = if is_sqlite {
                    ""
                } else {
                    "OVERRIDING SYSTEM VALUE"
                };
                let (consumer, holds) = (row.consumer, row.holds);
                let _ = write!(
                    sql,
                    "INSERT INTO inbox_parked (id, consumer, lane, holds, {columns}, next_attempt_at, \
                     occurred_at, occurred_nanos) {overriding} \
                     VALUES ({number}, '{consumer}', {lane}, {holds}, {common}, {at}, {at}, 123456789);"
                );
                "inbox_parked_attempt"
            }
        };
        for attempt in 1..=attempts {
            let _ = write!(
                sql,
                "INSERT INTO {table} (parked_id, attempt, cause) VALUES ({number}, {attempt}, {cause});"
            );
        }
    }
    fixture.run_sql(&sql).await;
}

pub fn note() -> Note {
    Note::new("ada", "the test says so").unwrap()
}

pub fn relay(number: i64) -> LetterId {
    LetterId::new(Side::Relay, number)
}

pub fn inbox(number: i64) -> LetterId {
    LetterId::new(Side::Inbox, number)
}

/// Everything that an operator's act may change, as text.
pub async fn snapshot<DB: TestDatabase>(fixture: &Fixture<DB>) -> Vec<String> {
    let mut rows = Vec::new();
    for sql in [
        "SELECT 'relay ' || id || ' ' || state || ' ' || attempts || ' ' || coalesce(CAST(next_attempt_at AS text), '-') FROM outbox_parked ORDER BY id",
        "SELECT 'inbox ' || id || ' ' || state || ' ' || attempts || ' ' || CAST(next_attempt_at AS text) FROM inbox_parked ORDER BY id",
        "SELECT 'discarded ' || side || ' ' || letter_id FROM outbox_discarded ORDER BY side, letter_id",
        "SELECT 'note ' || act || ' ' || side || ' ' || letter_id FROM outbox_operator_note ORDER BY id",
        "SELECT 'relay attempt ' || parked_id || ' ' || attempt FROM outbox_parked_attempt ORDER BY id",
        "SELECT 'inbox attempt ' || parked_id || ' ' || attempt FROM inbox_parked_attempt ORDER BY id",
    ] {
        rows.extend(fixture.texts(sql).await);
    }
    rows
}

/// Lanes of the relay that have not exactly one head.
pub const HEADLESS: &str = "SELECT count(*) FROM (
    SELECT shard, lane FROM outbox_parked GROUP BY shard, lane
    HAVING sum(CASE WHEN state = 'waiting' THEN 0 ELSE 1 END) <> 1
) AS lanes";

pub async fn count<DB: TestDatabase>(fixture: &Fixture<DB>, table: &str) -> i64 {
    fixture
        .number(&format!("SELECT count(*) FROM {table}"))
        .await
}

/// How many deadlocks the database has found; SQLite has none to find.
pub async fn deadlocks<DB: TestDatabase>(fixture: &Fixture<DB>) -> i64 {
    if DB::NAME == "SQLite" {
        return 0;
    }
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    fixture.number(sql).await
}
