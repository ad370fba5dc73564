use std::borrow::Cow;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use time::OffsetDateTime;

use super::RabbitMqBroker;
use super::failure::{Failure, short};
use super::names::routing_key;
use crate::broker::cloud_events::{self, Binding};
use crate::broker::partition::partition_of;
use crate::broker::{ContentMode, PublishError};
use crate::clock::Clock;
use crate::domain::Message;

/// Kept on disk.
const PERSISTENT: u8 = 2;
/// What a server's own plugin names it; AMQP's property of the time has whole seconds.
pub(super) const MILLISECONDS: &str = "timestamp_in_ms";
/// What the properties besides the headers take up at most.
const OTHER_PROPERTIES: usize = 2_048;

/// A message as it goes out.
pub(super) struct Outgoing<'a> {
    pub(super) exchange: ShortString,
    pub(super) routing_key: ShortString,
    pub(super) properties: BasicProperties,
    pub(super) body: Cow<'a, str>,
    /// What name and value of the headers take up.
    header_bytes: usize,
}

impl<'a> Outgoing<'a> {
    /// What fails here fails each time.
    pub(super) fn of(broker: &RabbitMqBroker, message: &'a Message) -> Result<Self, PublishError> {
        let (options, metadata) = (&broker.options, &message.metadata);
        let exchange = options
            .topics
            .full_name(options.topics.of(&metadata.event_type), '.');
        let partition = partition_of(metadata, options.partitions);
        let names = || -> Result<_, Failure> {
            Ok((
                short(&exchange)?,
                routing_key(partition, &metadata.event_type)?,
                short(&metadata.event_type)?,
            ))
        };
        let (exchange, routing_key, event_type) = names().map_err(PublishError::permanent)?;
        let (headers, body, content_type) = match options.content_mode {
            ContentMode::Binary => {
                let headers = cloud_events::binary(message, Binding::AMQP);
                let headers = headers.map_err(PublishError::permanent)?;
                (headers, Cow::from(&message.payload), cloud_events::JSON)
            }
            ContentMode::Structured => {
                let body = cloud_events::structured(message).map_err(PublishError::permanent)?;
                (Vec::new(), body.into(), cloud_events::STRUCTURED)
            }
        };
        let bytes = headers
            .iter()
            .map(|(name, value)| name.len() + value.len() + 6);
        let header_bytes = bytes.sum::<usize>();
        let mut table = FieldTable::default();
        for (name, value) in headers {
            let name = short(&name).map_err(PublishError::permanent)?;
            table.insert(name, AMQPValue::LongString(value.into()));
        }
        let now = OffsetDateTime::from(Clock::system().now());
        let milliseconds =
            i64::try_from(now.unix_timestamp_nanos() / 1_000_000).unwrap_or_default();
        table.insert(MILLISECONDS.into(), AMQPValue::LongLongInt(milliseconds));
        let properties = BasicProperties::default()
            .with_content_type(content_type.into())
            .with_delivery_mode(PERSISTENT)
            .with_message_id(metadata.message_id.to_string().into())
            .with_timestamp(u64::try_from(now.unix_timestamp()).unwrap_or_default())
            .with_type(event_type)
            .with_headers(table);
        let limit = broker.max_message_bytes;
        if body.len() > limit {
            return Err(PublishError::permanent(format!(
                "the message has {} bytes and {limit} are allowed; publish a reference to what is \
                 large, or raise max_message_bytes here and max_message_size at RabbitMQ",
                body.len()
            )));
        }
        Ok(Self {
            exchange,
            routing_key,
            properties,
            body,
            header_bytes,
        })
    }

    /// Refuses what RabbitMQ would close the whole connection over: properties go in one frame.
    pub(super) fn fits(&self, frame_bytes: usize) -> Result<(), PublishError> {
        let limit = frame_bytes.saturating_sub(OTHER_PROPERTIES);
        if self.header_bytes <= limit {
            return Ok(());
        }
        Err(PublishError::permanent(format!(
            "the message's headers have {} bytes and {limit} fit into RabbitMQ's frame_max; shorten \
             them, or publish in structured mode",
            self.header_bytes
        )))
    }
}
