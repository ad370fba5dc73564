use std::fmt::Write;

use outbox_runtime::domain::{MessageId, shard_of};
use uuid::Uuid;

/// The statement by which a program without this library writes events: `sequences` of one
/// aggregate. Every other one leaves out the shard.
pub fn insert_events(aggregate: &str, sequences: impl IntoIterator<Item = i64>) -> String {
    let nobody = MessageId::from_uuid(Uuid::nil());
    let shard = shard_of(Some(("Thing", aggregate)), nobody);
    let mut sql = String::from(
        "INSERT INTO outbox_message (shard, event_type, aggregate_type, aggregate_id, sequence, payload) VALUES ",
    );
    for (n, sequence) in sequences.into_iter().enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        let shard = if sequence % 2 == 0 {
            shard.to_string()
        } else {
            "NULL".to_owned()
        };
        let _ = write!(
            sql,
            "{comma}({shard}, 'Happened', 'Thing', '{aggregate}', {sequence}, '{{\"n\":{sequence}}}')"
        );
    }
    sql
}
