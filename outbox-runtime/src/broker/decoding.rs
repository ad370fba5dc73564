use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use time::OffsetDateTime;

use super::cloud_events::{Binding, Read, read};
use super::delivery::{Acknowledge, Delivery};
use super::foreign::{ForeignEvent, ForeignTopic};
use super::raw::RawMessage;
use super::standing_in::{derived_id, is_storable, is_storable_time, position_id, stand_in};
use super::subscriber::Subscription;
use crate::clock::Clock;
use crate::domain::{AggregateRef, Message, Metadata};

/// Makes messages of what an adapter reads: CloudEvents, and what foreign topics hold.
#[derive(Debug, Clone)]
pub struct Decoder {
    binding: Binding,
    wanted: BTreeSet<String>,
    foreign: Vec<ForeignTopic>,
}

/// What became of a broker's message: a message to handle, or one to set aside.
#[derive(Debug)]
pub struct Decoded {
    message: Box<Message>,
    malformation: Option<String>,
    published_at: Option<OffsetDateTime>,
}

impl Decoder {
    /// For a subscription over this binding, with these foreign topics.
    pub fn new(binding: Binding, subscription: &Subscription, foreign: &[ForeignTopic]) -> Self {
        Self {
            binding,
            wanted: subscription.event_types.clone(),
            foreign: foreign.to_vec(),
        }
    }

    /// What is to be handled; `None` if nobody here wants it, so that it is done.
    ///
    /// `foreign` names the foreign topic that it came from, if it came from one.
    pub fn decode(&self, raw: &RawMessage, foreign: Option<&str>) -> Option<Decoded> {
        let now = OffsetDateTime::from(Clock::system().now());
        let with_other_time;
        let raw = match raw.published_at {
            Some(time) if !is_storable_time(&time) => {
                with_other_time = RawMessage {
                    published_at: None,
                    ..raw.clone()
                };
                &with_other_time
            }
            _ => raw,
        };
        let map = foreign.and_then(|name| {
            let mut topics = self.foreign.iter();
            topics.find(|topic| topic.name == name)?.map()
        });
        let read = match map {
            None => read(raw, self.binding, &self.wanted, now),
            Some(map) => match catch_unwind(AssertUnwindSafe(|| map(raw))) {
                Ok(Ok(Some(event))) => message_of(event, raw, now),
                Ok(Ok(None)) => Read::Unwanted,
                Ok(Err(error)) => malformed(format!("its topic's mapping refuses it: {error}")),
                Err(_) => malformed("its topic's mapping panicked".to_owned()),
            },
        };
        let (message, malformation) = match read {
            Read::Unwanted => return None,
            Read::Message(message) => (message, None),
            Read::Malformed { reason, event_type } => {
                (Box::new(stand_in(raw, event_type, now)), Some(reason))
            }
        };
        Some(Decoded {
            message,
            malformation,
            published_at: raw.published_at,
        })
    }
}

impl Decoded {
    /// The delivery of it, answered through `answer`.
    pub fn deliver(self, attempt: u32, answer: impl Acknowledge + 'static) -> Delivery {
        let delivery = match self.malformation {
            None => Delivery::new(*self.message, attempt, answer),
            Some(reason) => Delivery::malformed(*self.message, attempt, reason, answer),
        };
        match self.published_at {
            Some(published_at) => delivery.with_published_at(published_at),
            None => delivery,
        }
    }
}

fn malformed(reason: String) -> Read {
    Read::Malformed {
        reason,
        event_type: None,
    }
}

fn message_of(event: ForeignEvent, raw: &RawMessage, now: OffsetDateTime) -> Read {
    let texts = [
        Some(&event.event_type),
        Some(&event.payload),
        event.id.as_ref(),
        event.correlation_id.as_ref(),
        event.producer.as_ref(),
        event.aggregate.as_ref().map(|(kind, _)| kind),
        event.aggregate.as_ref().map(|(_, id)| id),
    ];
    let headers = event.headers.iter().flat_map(|(name, value)| [name, value]);
    if !texts
        .into_iter()
        .flatten()
        .chain(headers)
        .all(|text| is_storable(text))
    {
        return malformed("its topic's mapping made a text with a NUL character".to_owned());
    }
    if event
        .occurred_at
        .is_some_and(|time| !is_storable_time(&time))
    {
        return malformed(
            "its topic's mapping made a time before the year 0 or after 9999".to_owned(),
        );
    }
    let producer = event.producer.unwrap_or_else(|| raw.topic.clone());
    let message_id = match &event.id {
        None => position_id(raw),
        Some(id) => id
            .parse()
            .unwrap_or_else(|_| derived_id(&["event", &producer, id])),
    };
    let correlation_id = event.correlation_id.or(event.id);
    Read::Message(Box::new(Message {
        metadata: Metadata {
            message_id,
            event_type: event.event_type,
            schema_version: event.schema_version,
            aggregate: event
                .aggregate
                .map(|(aggregate_type, aggregate_id)| AggregateRef {
                    aggregate_type,
                    aggregate_id,
                    sequence: 0,
                }),
            correlation_id: correlation_id.unwrap_or_else(|| message_id.to_string()),
            causation_id: None,
            producer,
            occurred_at: event.occurred_at.or(raw.published_at).unwrap_or(now),
            traceparent: None,
            tracestate: None,
            headers: event.headers,
        },
        payload: event.payload,
    }))
}
