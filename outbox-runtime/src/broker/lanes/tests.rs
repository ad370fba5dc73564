#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use time::OffsetDateTime;
use tokio::time::sleep;
use uuid::Uuid;

use super::*;
use crate::domain::{AggregateRef, MessageId, Metadata};

fn message(aggregate_id: Option<&str>) -> Message {
    Message {
        metadata: Metadata {
            message_id: MessageId::from_uuid(Uuid::nil()),
            event_type: "Happened".to_owned(),
            schema_version: 1,
            aggregate: aggregate_id.map(|id| AggregateRef {
                aggregate_type: "Thing".to_owned(),
                aggregate_id: id.to_owned(),
                sequence: 1,
            }),
            correlation_id: "c".to_owned(),
            causation_id: None,
            producer: "p".to_owned(),
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            traceparent: None,
            tracestate: None,
            headers: BTreeMap::new(),
        },
        payload: String::new(),
    }
}

/// What became of each: taken, failed or withheld.
fn told(results: &[Result<(), PublishError>]) -> String {
    let one = |result: &Result<(), PublishError>| match result {
        Ok(()) => '+',
        Err(error) if error.is_withheld() => '-',
        Err(_) => '!',
    };
    results.iter().map(one).collect()
}

#[tokio::test(start_paused = true)]
async fn no_message_begins_late_but_the_first_of_each_key() {
    let messages = ["a", "a", "b", "a", "a", "b"].map(|id| message(Some(id)));
    let slow = async |_: &Message| {
        sleep(Duration::from_secs(2)).await;
        Ok(())
    };
    let results = publish_in_lanes(&messages, Duration::from_secs(3), slow).await;
    assert_eq!(told(&results), "+++--+");
    let results = publish_in_lanes(&messages, Duration::ZERO, slow).await;
    assert_eq!(told(&results), "+-+---");
    let results = publish_in_lanes(&messages, Duration::MAX, slow).await;
    assert_eq!(told(&results), "++++++");
}

#[tokio::test]
async fn what_stands_behind_a_failure_is_withheld_and_nothing_else() {
    let messages = [Some("a"), Some("b"), None, Some("a"), None, Some("b")].map(message);
    let publish = async |message: &Message| match &message.metadata.aggregate {
        Some(aggregate) if aggregate.aggregate_id == "a" => Err(PublishError::transient("no")),
        None if std::ptr::eq(message, &messages[2]) => Err(PublishError::permanent("never")),
        _ => Ok(()),
    };
    let results = publish_in_lanes(&messages, Duration::MAX, publish).await;
    assert_eq!(told(&results), "!+!-++");
}
