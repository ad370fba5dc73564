use std::error::Error;

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishError as NatsError, PublishErrorKind};
use async_nats::jetstream::{self, ErrorCode};
use bytes::Bytes;
use tokio::time::timeout;

use super::{NatsBroker, names, stream};
use crate::broker::cloud_events::{Binding, JSON, STRUCTURED, binary, structured};
use crate::broker::{ContentMode, PublishError};
use crate::domain::Message;

const MESSAGE_ID: &str = "Nats-Msg-Id";
const CONTENT_TYPE: &str = "Content-Type";

/// Publishes a message and waits until its stream has it.
pub(super) async fn publish(broker: &NatsBroker, message: &Message) -> Result<(), PublishError> {
    let limit = broker.options.confirm_within;
    match timeout(limit, publish_without_limit(broker, message)).await {
        Ok(result) => result,
        Err(_) => Err(PublishError::transient(format!(
            "NATS did not confirm the message within {limit:?}"
        ))),
    }
}

async fn publish_without_limit(broker: &NatsBroker, message: &Message) -> Result<(), PublishError> {
    let options = &broker.options;
    let (headers, body) = written(message, options.content_mode)?;
    let subject = names::subject(&options.topics, options.partitions, message);
    let established = broker.connection.get().await;
    let established = established.map_err(PublishError::transient)?;
    let send = || async {
        established
            .jetstream
            .publish_with_headers(subject.clone(), headers.clone(), body.clone())
            .await?
            .await
    };
    let mut sent = send().await;
    let is_missing = |error: &NatsError| matches!(error.kind(), PublishErrorKind::StreamNotFound);
    if options.declare && sent.as_ref().is_err_and(is_missing) {
        let topic = options.topics.of(&message.metadata.event_type);
        stream::of_topic(broker, established, topic)
            .await
            .map_err(PublishError::transient)?;
        sent = send().await;
    }
    match sent {
        // A duplicate is in the stream already.
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Err(PublishError::transient(format!(
            "no stream takes the subject {subject}; make one, or let it be declared"
        ))),
        Err(error) if is_refused_for_good(&error) => Err(PublishError::permanent(error)),
        Err(error) => Err(PublishError::transient(error)),
    }
}

fn written(message: &Message, mode: ContentMode) -> Result<(HeaderMap, Bytes), PublishError> {
    let mut headers = HeaderMap::new();
    headers.insert(MESSAGE_ID, message.metadata.message_id.to_string());
    let body = match mode {
        ContentMode::Binary => {
            headers.insert(CONTENT_TYPE, JSON);
            for (name, value) in binary(message, Binding::NATS).map_err(PublishError::permanent)? {
                headers.insert(name, value);
            }
            Bytes::copy_from_slice(message.payload.as_bytes())
        }
        ContentMode::Structured => {
            headers.insert(CONTENT_TYPE, STRUCTURED);
            structured(message).map_err(PublishError::permanent)?.into()
        }
    };
    Ok((headers, body))
}

/// Whether the message is larger than the server or the stream allows.
fn is_refused_for_good(error: &NatsError) -> bool {
    if error.kind() == PublishErrorKind::MaxPayloadExceeded {
        return true;
    }
    let code = error
        .source()
        .and_then(|source| source.downcast_ref::<jetstream::Error>())
        .map(jetstream::Error::error_code);
    code.is_some_and(|code| {
        [
            ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM,
            ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM,
        ]
        .contains(&code)
    })
}
