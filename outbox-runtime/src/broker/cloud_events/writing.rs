use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Serialize;
use serde_json::value::RawValue;
use time::format_description::well_known::Rfc3339;

use super::{Binding, JSON};
use crate::domain::Message;

/// What the HTTP binding encodes in a header, section 3.1.3.2; whatever is not ASCII is encoded too.
const HEADER: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');
/// What a URI reference holds as it is (RFC 3986, section 2) is left out.
const SOURCE: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A message can't be written as a CloudEvent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CloudEventError {
    /// Its event type is empty.
    #[error("the event's type is empty; whoever wrote the row has to name it")]
    NoType,
    /// Its time has no form in RFC 3339.
    #[error("the event's time has no form in RFC 3339; it needs a year from 0 to 9999")]
    Time(#[source] time::error::Format),
    /// Its payload is no JSON, which structured mode needs.
    #[error(
        "the payload is no JSON, which structured mode needs; write JSON, or publish in binary mode"
    )]
    Payload(#[source] serde_json::Error),
    /// Its headers can't be written as JSON.
    #[error("the headers can't be written as JSON")]
    Headers(#[source] serde_json::Error),
}

/// The source of a producer without a name: a URI reference has to have one.
const NOBODY: &str = "/";

type Attributes<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// The headers of a message in binary mode, without the content type, which is [`JSON`]. The body is
/// the payload as it is.
///
/// # Errors
/// [`CloudEventError`] when the message has no such form; it will have none the next time either.
pub fn binary(
    message: &Message,
    binding: Binding,
) -> Result<Vec<(String, String)>, CloudEventError> {
    let headers = attributes(message)?.into_iter().map(|(name, value)| {
        let value = match binding.is_percent_encoded {
            true => utf8_percent_encode(&value, HEADER).to_string(),
            false => value.into_owned(),
        };
        (format!("{}{name}", binding.prefix), value)
    });
    Ok(headers.collect())
}

/// The body of a message in structured mode, whose content type is
/// [`STRUCTURED`](super::STRUCTURED). The payload stands in it byte for byte.
///
/// # Errors
/// [`CloudEventError`] when the message has no such form; it will have none the next time either.
pub fn structured(message: &Message) -> Result<String, CloudEventError> {
    #[derive(Serialize)]
    struct Structured<'a> {
        #[serde(flatten)]
        attributes: BTreeMap<&'static str, Cow<'a, str>>,
        schemaversion: u32,
        datacontenttype: &'static str,
        data: &'a RawValue,
    }

    let mut attributes: BTreeMap<_, _> = attributes(message)?.into_iter().collect();
    attributes.remove("schemaversion");
    let structured = Structured {
        attributes,
        schemaversion: message.metadata.schema_version,
        datacontenttype: JSON,
        data: serde_json::from_str(&message.payload).map_err(CloudEventError::Payload)?,
    };
    serde_json::to_string(&structured).map_err(CloudEventError::Payload)
}

fn attributes(message: &Message) -> Result<Attributes<'_>, CloudEventError> {
    let metadata = &message.metadata;
    if metadata.event_type.is_empty() {
        return Err(CloudEventError::NoType);
    }
    let time = metadata.occurred_at.format(&Rfc3339);
    let source = source(&metadata.producer);
    let mut attributes: Attributes<'_> = vec![
        ("specversion", "1.0".into()),
        ("id", metadata.message_id.to_string().into()),
        ("type", metadata.event_type.as_str().into()),
        ("time", time.map_err(CloudEventError::Time)?.into()),
        ("schemaversion", metadata.schema_version.to_string().into()),
        ("correlationid", metadata.correlation_id.as_str().into()),
    ];
    if source != metadata.producer || source == NOBODY {
        attributes.push(("producer", metadata.producer.as_str().into()));
    }
    attributes.push(("source", source));
    if let Some(aggregate) = &metadata.aggregate {
        let id = aggregate.aggregate_id.as_str();
        attributes.push(("aggregatetype", aggregate.aggregate_type.as_str().into()));
        attributes.push(("aggregateid", id.into()));
        attributes.push(("aggregatesequence", aggregate.sequence.to_string().into()));
        attributes.push(("subject", id.into()));
        attributes.push(("partitionkey", id.into()));
    }
    let optional = [
        ("causationid", &metadata.causation_id),
        ("traceparent", &metadata.traceparent),
        ("tracestate", &metadata.tracestate),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            attributes.push((name, value.as_str().into()));
        }
    }
    if !metadata.headers.is_empty() {
        let headers = serde_json::to_string(&metadata.headers);
        attributes.push((
            "outboxheaders",
            headers.map_err(CloudEventError::Headers)?.into(),
        ));
    }
    // An attribute that is there must not be empty. Whoever reads them knows.
    attributes.retain(|(_, value)| !value.is_empty());
    Ok(attributes)
}

/// The producer as a URI reference that is not empty.
fn source(producer: &str) -> Cow<'_, str> {
    match producer {
        "" => NOBODY.into(),
        _ => utf8_percent_encode(producer, SOURCE).into(),
    }
}
