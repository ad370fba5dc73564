use std::collections::BTreeMap;

use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::domain::{AggregateRef, Message, MessageId, Metadata, Shard, shard_of};

/// What is in a row of the log.
#[derive(Debug)]
pub enum LogContent {
    /// The shard was not asked for.
    NotRead,
    /// A message.
    Message(Box<Message>),
    /// A foreign writer's row that is no message.
    Unreadable(Box<Unreadable>),
}

impl LogContent {
    /// What a message takes up: payload and headers.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Message(message) => message.bytes(),
            Self::NotRead | Self::Unreadable(_) => 0,
        }
    }
}

/// A row that is no message, and what could be read of it all the same.
#[derive(Debug)]
pub struct Unreadable {
    /// What is wrong with it.
    pub reason: String,
    /// The event's name.
    pub event_type: Option<String>,
    /// The aggregate: the row holds its place in that one's order.
    pub aggregate: Option<AggregateRef>,
}

/// A row's content and the shard that it belongs to.
#[derive(Debug)]
pub(crate) struct ReadMessage {
    pub(crate) content: LogContent,
    /// For a row whose writer did not know it.
    pub(crate) shard: Option<Shard>,
}

impl ReadMessage {
    /// A row of which a column has a value that is none of ours.
    pub(crate) fn unreadable(
        error: &sqlx::Error,
        event_type: Option<String>,
        aggregate: Option<(String, String)>,
    ) -> Self {
        let aggregate = aggregate.map(|(aggregate_type, aggregate_id)| AggregateRef {
            aggregate_type,
            aggregate_id,
            sequence: 0,
        });
        Self {
            // Only an aggregate's rows have to be in one shard.
            shard: aggregate.as_ref().map(|aggregate| {
                let names = (&*aggregate.aggregate_type, &*aggregate.aggregate_id);
                shard_of(Some(names), MessageId::from_uuid(Uuid::nil()))
            }),
            content: LogContent::Unreadable(Box::new(Unreadable {
                reason: error.to_string(),
                event_type,
                aggregate,
            })),
        }
    }
}

impl From<StoredMessage> for ReadMessage {
    fn from(stored: StoredMessage) -> Self {
        Self {
            shard: Some(stored.shard()),
            content: stored.into_content(),
        }
    }
}

/// A message's columns. What only our own writer always fills may be missing.
pub(crate) struct StoredMessage {
    pub(crate) message_id: Uuid,
    pub(crate) event_type: String,
    pub(crate) schema_version: i32,
    pub(crate) aggregate_type: Option<String>,
    pub(crate) aggregate_id: Option<String>,
    pub(crate) sequence: Option<i64>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) causation_id: Option<String>,
    pub(crate) producer: Option<String>,
    pub(crate) occurred_at: OffsetDateTime,
    pub(crate) traceparent: Option<String>,
    pub(crate) tracestate: Option<String>,
    pub(crate) headers: Option<String>,
    pub(crate) payload: String,
}

impl StoredMessage {
    /// The shard, for a row whose writer did not know it.
    fn shard(&self) -> Shard {
        let aggregate = self
            .aggregate_type
            .as_deref()
            .zip(self.aggregate_id.as_deref());
        shard_of(aggregate, MessageId::from_uuid(self.message_id))
    }

    /// The row's content: a message, if it is one.
    fn into_content(self) -> LogContent {
        let aggregate =
            self.aggregate_type
                .zip(self.aggregate_id)
                .map(|(aggregate_type, aggregate_id)| AggregateRef {
                    aggregate_type,
                    aggregate_id,
                    sequence: self.sequence.unwrap_or_default(),
                });
        let version = u32::try_from(self.schema_version)
            .map_err(|_| format!("schema_version is {}", self.schema_version));
        let headers = self.headers.as_deref().map(read_headers).transpose();
        let (schema_version, headers) = match (version, headers) {
            (Ok(version), Ok(headers)) => (version, headers.unwrap_or_default()),
            (Err(reason), _) | (_, Err(reason)) => {
                return LogContent::Unreadable(Box::new(Unreadable {
                    reason,
                    event_type: Some(self.event_type),
                    aggregate,
                }));
            }
        };
        let message_id = MessageId::from_uuid(self.message_id);
        LogContent::Message(Box::new(Message {
            metadata: Metadata {
                message_id,
                event_type: self.event_type,
                schema_version,
                aggregate,
                correlation_id: self
                    .correlation_id
                    .unwrap_or_else(|| message_id.to_string()),
                causation_id: self.causation_id,
                producer: self.producer.unwrap_or_default(),
                occurred_at: self.occurred_at,
                traceparent: self.traceparent,
                tracestate: self.tracestate,
                headers,
            },
            payload: self.payload,
        }))
    }
}

/// Our own writer stores strings; another one's numbers and the like keep their JSON text.
fn read_headers(json: &str) -> Result<BTreeMap<String, String>, String> {
    let headers: Option<BTreeMap<String, Value>> =
        serde_json::from_str(json).map_err(|_| "headers is no JSON object".to_owned())?;
    let as_text = |(name, value)| match value {
        Value::String(text) => (name, text),
        other => (name, other.to_string()),
    };
    Ok(headers
        .unwrap_or_default()
        .into_iter()
        .map(as_text)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> StoredMessage {
        StoredMessage {
            message_id: Uuid::from_u128(7),
            event_type: "OrderPaid".to_owned(),
            schema_version: 1,
            aggregate_type: None,
            aggregate_id: None,
            sequence: None,
            correlation_id: None,
            causation_id: None,
            producer: None,
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            traceparent: None,
            tracestate: None,
            headers: None,
            payload: "{}".to_owned(),
        }
    }

    #[test]
    fn a_foreign_writer_may_leave_out_what_it_does_not_know() {
        let LogContent::Message(message) = row().into_content() else {
            panic!("a message")
        };
        assert_eq!(
            message.metadata.correlation_id,
            Uuid::from_u128(7).to_string()
        );
        assert_eq!(message.metadata.aggregate, None);
    }

    #[test]
    fn headers_are_read_leniently_and_nonsense_is_named() {
        let read = |headers: &str| {
            StoredMessage {
                headers: Some(headers.to_owned()),
                ..row()
            }
            .into_content()
        };
        let LogContent::Message(message) = read(r#"{"a":"b","n":1}"#) else {
            panic!("a message")
        };
        assert_eq!(
            message.metadata.headers.get("n").map(String::as_str),
            Some("1")
        );
        assert!(matches!(read("null"), LogContent::Message(_)));
        assert!(matches!(read("[1]"), LogContent::Unreadable(_)));
    }
}
