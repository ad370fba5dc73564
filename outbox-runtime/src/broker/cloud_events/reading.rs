use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Binding;
use crate::broker::raw::RawMessage;
use crate::broker::standing_in::{derived_id, is_storable, is_storable_time};
use crate::domain::{AggregateRef, Message, Metadata};

/// What a broker's message turned out to be.
#[derive(Debug)]
pub(in crate::broker) enum Read {
    Message(Box<Message>),
    /// An event of a type that nobody here wants.
    Unwanted,
    /// Why it is none, and its type if that could be read.
    Malformed {
        reason: String,
        event_type: Option<String>,
    },
}

/// Reads a message in either mode.
pub(in crate::broker) fn read(
    raw: &RawMessage,
    binding: Binding,
    wanted: &BTreeSet<String>,
    now: OffsetDateTime,
) -> Read {
    let event = match Event::of(raw, binding) {
        Ok(event) => event,
        Err(reason) => {
            return Read::Malformed {
                reason,
                event_type: None,
            };
        }
    };
    let named = event.attributes.get("type").cloned();
    let event_type = named.filter(|name| !name.is_empty());
    if event_type
        .as_ref()
        .is_some_and(|name| !wanted.contains(name))
    {
        return Read::Unwanted;
    }
    let key = raw.key.clone().filter(|_| binding.is_ordered_by_key);
    match event.into_message(raw.published_at, key, now) {
        Ok(message) => Read::Message(Box::new(message)),
        Err(reason) => Read::Malformed { reason, event_type },
    }
}

/// A CloudEvent whose attributes nobody has looked at.
struct Event<'a> {
    attributes: BTreeMap<String, String>,
    data: Result<Cow<'a, [u8]>, String>,
}

impl<'a> Event<'a> {
    fn of(raw: &'a RawMessage, binding: Binding) -> Result<Self, String> {
        let media_type = raw.content_type.as_deref().map(media_type);
        match media_type.as_deref() {
            Some("application/cloudevents+json") => Self::structured(&raw.body),
            Some(other) if other.starts_with("application/cloudevents") => Err(format!(
                "CloudEvents as {other} are not read; publish them one by one, in binary mode or as \
                 application/cloudevents+json"
            )),
            _ => Self::binary(raw, binding),
        }
    }

    fn binary(raw: &'a RawMessage, binding: Binding) -> Result<Self, String> {
        let mut attributes = BTreeMap::new();
        for (name, value) in &raw.headers {
            let attribute = std::iter::once(&binding.prefix)
                .chain(binding.also)
                .find_map(|prefix| strip_prefix_in_any_case(name, prefix));
            if let Some(attribute) = attribute {
                let value = match binding.is_percent_encoded {
                    true => percent_decode_str(value)
                        .decode_utf8()
                        .map_err(|_| format!("the header {name} is not UTF-8 when decoded"))?
                        .into_owned(),
                    false => value.clone(),
                };
                attributes.insert(attribute.to_ascii_lowercase(), value);
            }
        }
        if attributes.is_empty() {
            return Err(format!(
                "it is no CloudEvent: it has neither headers that begin with {} nor the content type \
                 application/cloudevents+json; read its topic as a foreign one with a mapping",
                binding.prefix
            ));
        }
        if let Some(content_type) = &raw.content_type {
            attributes.insert("datacontenttype".to_owned(), content_type.clone());
        }
        Ok(Self {
            attributes,
            data: Ok(Cow::Borrowed(&raw.body)),
        })
    }

    fn structured(body: &'a [u8]) -> Result<Self, String> {
        let fields: BTreeMap<String, &'a RawValue> =
            serde_json::from_slice(body).map_err(|error| {
                // Not the error itself, which tells of what it met.
                let (line, column) = (error.line(), error.column());
                format!(
                    "it is no JSON object, as its content type says: line {line}, column {column}"
                )
            })?;
        let mut attributes = BTreeMap::new();
        let mut data = Ok(Cow::Borrowed(&b"null"[..]));
        for (name, value) in fields {
            match name.as_str() {
                "data" => data = Ok(Cow::Borrowed(value.get().as_bytes())),
                "data_base64" => {
                    data = serde_json::from_str::<String>(value.get())
                        .ok()
                        .and_then(|text| STANDARD.decode(text).ok())
                        .map(Cow::Owned)
                        .ok_or_else(|| "data_base64 is no base64".to_owned());
                }
                _ => {
                    if let Some(text) = text_of(value).map_err(|()| {
                        format!("its attribute {name} is neither text nor a number")
                    })? {
                        attributes.insert(name, text);
                    }
                }
            }
        }
        Ok(Self { attributes, data })
    }

    fn into_message(
        mut self,
        published_at: Option<OffsetDateTime>,
        key: Option<String>,
        now: OffsetDateTime,
    ) -> Result<Message, String> {
        let unstorable = self
            .attributes
            .iter()
            .find(|(name, value)| !is_storable(name) || !is_storable(value));
        if let Some((name, _)) = unstorable {
            return Err(format!("its attribute {name:?} holds a NUL character"));
        }
        let version = self.required("specversion")?;
        if version != "1" && !version.starts_with("1.") {
            return Err(format!(
                "it is a CloudEvent of version {version}; 1.0 is read"
            ));
        }
        let content_type = self.attributes.remove("datacontenttype");
        let payload = payload(self.data.clone()?, content_type.as_deref())?;
        let (id, event_type) = (self.required("id")?, self.required("type")?);
        let source = self.required("source")?;
        // An id is unique with its source alone, unless one of ours made it.
        let is_ours = self.attributes.contains_key("schemaversion");
        let message_id = match id.parse() {
            Ok(id) if is_ours => id,
            _ => derived_id(&["event", &source, &id]),
        };
        let occurred_at = match self.attributes.remove("time") {
            Some(text) => time_of(&text)?,
            None => published_at.unwrap_or(now),
        };
        let partition_key = self.attributes.remove("partitionkey");
        let aggregate = self.aggregate(&source, partition_key.or(key))?;
        let mut headers = self.headers()?;
        let subject = self.attributes.remove("subject");
        if let Some(subject) = subject.filter(|_| aggregate.is_none()) {
            headers.insert("subject".to_owned(), subject);
        }
        let metadata = Metadata {
            message_id,
            event_type,
            schema_version: match self.attributes.remove("schemaversion") {
                None => 1,
                Some(text) => text
                    .parse()
                    .ok()
                    .filter(|&version| version > 0)
                    .ok_or("its schemaversion is no number from 1")?,
            },
            aggregate,
            correlation_id: self.attributes.remove("correlationid").unwrap_or(id),
            causation_id: self.attributes.remove("causationid"),
            producer: match self.attributes.remove("producer") {
                Some(producer) => producer,
                // A source must not be empty; a producer may be.
                None if is_ours && source == "/" => String::new(),
                None => source,
            },
            occurred_at,
            traceparent: self.attributes.remove("traceparent"),
            tracestate: self.attributes.remove("tracestate"),
            headers: {
                headers.append(&mut self.attributes);
                headers
            },
        };
        Ok(Message { metadata, payload })
    }

    fn required(&mut self, name: &str) -> Result<String, String> {
        self.attributes
            .remove(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| format!("it is no CloudEvent: its attribute {name} is missing"))
    }

    fn aggregate(
        &mut self,
        source: &str,
        key: Option<String>,
    ) -> Result<Option<AggregateRef>, String> {
        let (kind, id) = (
            self.attributes.remove("aggregatetype"),
            self.attributes.remove("aggregateid"),
        );
        let sequence = self.attributes.remove("aggregatesequence");
        let is_ours = sequence.is_some();
        let sequence = sequence.map_or(Ok(0), |text| {
            text.parse()
                .map_err(|_| "its aggregatesequence is no whole number")
        })?;
        let (aggregate_type, aggregate_id) = match (kind, id, key) {
            (Some(kind), Some(id), _) => (kind, id),
            // What is empty is not written.
            (kind, id, _) if is_ours => (kind.unwrap_or_default(), id.unwrap_or_default()),
            (_, _, Some(key)) if is_storable(&key) => (source.to_owned(), key),
            _ => return Ok(None),
        };
        Ok(Some(AggregateRef {
            aggregate_type,
            aggregate_id,
            sequence,
        }))
    }

    fn headers(&mut self) -> Result<BTreeMap<String, String>, String> {
        match self.attributes.remove("outboxheaders") {
            None => Ok(BTreeMap::new()),
            Some(text) => {
                let headers: BTreeMap<String, String> = serde_json::from_str(&text)
                    .map_err(|_| "its outboxheaders are no JSON object of texts")?;
                let are_storable = headers
                    .iter()
                    .all(|(name, value)| is_storable(name) && is_storable(value));
                match are_storable {
                    true => Ok(headers),
                    false => Err("its outboxheaders hold a NUL character".to_owned()),
                }
            }
        }
    }
}

fn payload(data: Cow<'_, [u8]>, content_type: Option<&str>) -> Result<String, String> {
    let content_type = content_type.map(media_type);
    let is_json = content_type
        .as_deref()
        .is_none_or(|name| name.ends_with("/json") || name.ends_with("+json"));
    if !is_json {
        let content_type = content_type.unwrap_or_default();
        return Err(format!(
            "its content is {content_type}; handlers read JSON, so map it as a foreign topic"
        ));
    }
    match String::from_utf8(data.into_owned()) {
        Ok(text) if text.is_empty() => Ok("null".to_owned()),
        Ok(text) if is_storable(&text) => Ok(text),
        _ => Err("its content is no JSON: it is not UTF-8, or holds a NUL character".to_owned()),
    }
}

/// A time of RFC 3339, or AMQP's number of milliseconds: that is what the Python package's binding
/// to AMQP writes, and AMQP 0.9.1 has no type that would tell it from any other number.
fn time_of(text: &str) -> Result<OffsetDateTime, String> {
    let milliseconds = text.parse::<i64>().ok();
    let counted = milliseconds.and_then(|milliseconds| {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(milliseconds) * 1_000_000).ok()
    });
    match counted.map_or_else(|| OffsetDateTime::parse(text, &Rfc3339), Ok) {
        Ok(time) if is_storable_time(&time) => Ok(time),
        Ok(_) => Err("its time is before the year 0 or after 9999".to_owned()),
        Err(error) => Err(format!("its time is none of RFC 3339: {error}")),
    }
}

/// The media type without its parameters.
fn media_type(content_type: &str) -> String {
    let name = content_type.split(';').next().unwrap_or_default();
    name.trim().to_ascii_lowercase()
}

fn strip_prefix_in_any_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// An attribute's value as text; `None` for null, which stands for an attribute that is not there.
fn text_of(value: &RawValue) -> Result<Option<String>, ()> {
    match serde_json::from_str(value.get()) {
        Ok(serde_json::Value::String(text)) => Ok(Some(text)),
        Ok(serde_json::Value::Null) => Ok(None),
        Ok(value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => {
            Ok(Some(value.to_string()))
        }
        _ => Err(()),
    }
}
