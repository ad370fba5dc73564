use std::fmt;
use std::str::FromStr;

use ::redis::Value;
use time::OffsetDateTime;

use super::failure::Failure;
use crate::broker::RawMessage;

/// The field that holds the content.
pub(super) const DATA: &str = "data";
/// The field that says what the content is.
pub(super) const CONTENT_TYPE: &str = "content-type";

/// Ids with fewer milliseconds are no times: somebody else has numbered the entries.
const FIRST_TIME: u64 = 1_000_000_000_000;

/// An entry's id: its place in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct Id {
    milliseconds: u64,
    sequence: u64,
}

impl Id {
    /// When the server took the entry, by its clock.
    fn time(self) -> Option<OffsetDateTime> {
        let nanoseconds = i128::from(self.milliseconds) * 1_000_000;
        let time = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok();
        time.filter(|_| self.milliseconds >= FIRST_TIME)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.milliseconds, self.sequence)
    }
}

impl FromStr for Id {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let (milliseconds, sequence) = text.split_once('-').unwrap_or((text, "0"));
        match (milliseconds.parse(), sequence.parse()) {
            (Ok(milliseconds), Ok(sequence)) => Ok(Self {
                milliseconds,
                sequence,
            }),
            _ => Err(Failure::unexpected()),
        }
    }
}

/// What was read of an entry.
pub(super) struct Entry {
    pub(super) id: Id,
    /// Names and values; nothing where the entry was trimmed away while it was unacknowledged.
    pub(super) fields: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl Entry {
    /// An entry as XREADGROUP, XREAD and XRANGE show it.
    pub(super) fn of(value: Value) -> Result<Self, Failure> {
        let [id, fields] = pair(value)?;
        let fields = match fields {
            Value::Nil => None,
            Value::Map(fields) => Some(
                fields
                    .into_iter()
                    .map(|(name, value)| Ok((bytes(name)?, bytes(value)?)))
                    .collect::<Result<_, Failure>>()?,
            ),
            fields => {
                let mut texts = array(fields)?.into_iter();
                let mut pairs = Vec::new();
                while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
                    pairs.push((bytes(name)?, bytes(value)?));
                }
                Some(pairs)
            }
        };
        Ok(Self {
            id: text(id)?.parse()?,
            fields,
        })
    }

    /// The message in it; nothing if it was trimmed away.
    pub(super) fn into_raw(self, stream: &str) -> Option<RawMessage> {
        let mut raw = RawMessage::new(stream, self.id.to_string(), Vec::new());
        raw.published_at = self.id.time();
        for (name, value) in self.fields? {
            if name == DATA.as_bytes() {
                raw.body = value;
                continue;
            }
            let value = String::from_utf8_lossy(&value).into_owned();
            if name.eq_ignore_ascii_case(CONTENT_TYPE.as_bytes()) {
                raw.content_type = Some(value);
            } else {
                let name = String::from_utf8_lossy(&name).into_owned();
                raw.headers.insert(name, value);
            }
        }
        Some(raw)
    }
}

pub(super) fn array(value: Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(Failure::unexpected()),
    }
}

pub(super) fn pair(value: Value) -> Result<[Value; 2], Failure> {
    array(value)?.try_into().map_err(|_| Failure::unexpected())
}

pub(super) fn text(value: Value) -> Result<String, Failure> {
    String::from_utf8(bytes(value)?).map_err(|_| Failure::unexpected())
}

fn bytes(value: Value) -> Result<Vec<u8>, Failure> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        _ => Err(Failure::unexpected()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn ids_are_ordered_as_numbers_and_tell_the_time() {
        let [early, late] = ["1700000000000-9", "1700000000000-10"];
        assert!(early.parse::<Id>().unwrap() < late.parse().unwrap());
        assert_eq!(early.parse::<Id>().unwrap().to_string(), early);
        let time = early.parse::<Id>().unwrap().time().unwrap();
        assert_eq!(time.unix_timestamp(), 1_700_000_000);
        assert!("17-1".parse::<Id>().unwrap().time().is_none());
        assert!("x".parse::<Id>().is_err());
    }

    #[test]
    fn fields_are_headers_but_for_content_and_its_type() {
        let fields = ["ce_id", "7", "data", "{}", "Content-Type", "a/b", "x", "y"];
        let fields = Value::Array(fields.map(bulk).to_vec());
        let entry = Entry::of(Value::Array(vec![bulk("5-1"), fields])).unwrap();
        let raw = entry.into_raw("s").unwrap();
        assert_eq!((raw.topic.as_str(), raw.position.as_str()), ("s", "5-1"));
        assert_eq!(raw.body, b"{}");
        assert_eq!(raw.content_type.as_deref(), Some("a/b"));
        let headers = raw.headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        assert_eq!(headers.collect::<Vec<_>>(), [("ce_id", "7"), ("x", "y")]);
    }

    #[test]
    fn a_trimmed_entry_has_no_message() {
        let entry = Entry::of(Value::Array(vec![bulk("5-1"), Value::Nil])).unwrap();
        assert!(entry.into_raw("s").is_none());
    }
}
