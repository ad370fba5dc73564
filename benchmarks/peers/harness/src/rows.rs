//! Fast inserts for the outboxes whose own call takes one message at a time.

use anyhow::Result;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::message::Message;

const CHUNK: u64 = 5_000;

/// Runs `insert` with an array of identifiers as `$1` and one of payloads as `$2`, until all rows are in.
pub async fn insert(
    connection: &mut PgConnection,
    insert: &'static str,
    id: fn() -> Uuid,
    rows: u64,
) -> Result<()> {
    for messages in Message::chunks(rows, CHUNK) {
        let ids: Vec<Uuid> = messages.iter().map(|_| id()).collect();
        let payloads: Vec<String> = messages
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<_, _>>()?;
        sqlx::query(insert)
            .bind(ids)
            .bind(payloads)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
