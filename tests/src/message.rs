use std::collections::BTreeMap;

use outbox_runtime::{AggregateRef, DomainEvent, Message, MessageId, Metadata};
use time::OffsetDateTime;
use uuid::Uuid;

/// A message as another service's relay would send it, about the aggregate `Source` of that id.
pub fn message<E: DomainEvent>(event: &E, aggregate_id: &str, sequence: i64) -> Message {
    Message {
        metadata: Metadata {
            message_id: MessageId::from_uuid(Uuid::new_v4()),
            event_type: E::NAME.to_owned(),
            schema_version: E::VERSION,
            aggregate: Some(AggregateRef {
                aggregate_type: "Source".to_owned(),
                aggregate_id: aggregate_id.to_owned(),
                sequence,
            }),
            correlation_id: format!("correlation-{aggregate_id}"),
            causation_id: None,
            producer: "another-service".to_owned(),
            occurred_at: OffsetDateTime::now_utc(),
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
            tracestate: Some("vendor=1".to_owned()),
            headers: BTreeMap::new(),
        },
        payload: event.encode().expect("the event encodes"),
    }
}
