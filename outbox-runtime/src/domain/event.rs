use std::any::Any;
use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::key::KeyError;

/// Something that happened in the domain, as other parts of the system are told of it.
///
/// `#[domain_event]` implements it; nothing keeps you from writing it by hand. The name and the
/// version are part of the contract with every consumer, so they are constants that moving or
/// renaming the Rust type leaves alone once `name = "..."` is given.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a domain event",
    label = "not a domain event",
    note = "annotate the type with `#[domain_event(version = 1)]`"
)]
pub trait DomainEvent: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name on the wire, such as `"order.placed"`.
    const NAME: &'static str;

    /// The schema version that this type writes, from 1.
    const VERSION: u32;

    /// The oldest schema version that this type still reads, from 1 to [`VERSION`](Self::VERSION).
    ///
    /// It is lower than the version when older types are upcast.
    const OLDEST_VERSION: u32 = Self::VERSION;

    /// The key under which this event can be stored only once, if it has one.
    ///
    /// # Errors
    /// [`KeyError`] when a field's `Display` fails.
    fn business_key(&self) -> Result<Option<String>, KeyError> {
        Ok(None)
    }

    /// Writes the payload as JSON text.
    ///
    /// # Errors
    /// [`EncodeError`] when serde refuses the value, for example a map with keys that are no text.
    fn encode(&self) -> Result<String, EncodeError> {
        serde_json::to_string(self).map_err(|source| EncodeError {
            event_type: Cow::Borrowed(Self::NAME),
            schema_version: Self::VERSION,
            source,
        })
    }

    /// Reads a payload of the given version, upcasting an older one.
    ///
    /// # Errors
    /// [`DecodeError::UnreadableVersion`] for a version outside
    /// [`OLDEST_VERSION`](Self::OLDEST_VERSION)`..=`[`VERSION`](Self::VERSION),
    /// [`DecodeError::Payload`] when the payload is not the JSON of that version.
    fn decode(schema_version: u32, payload: &str) -> Result<Self, DecodeError> {
        if schema_version != Self::VERSION {
            return Err(DecodeError::unreadable::<Self>(schema_version));
        }
        DecodeError::read_json::<Self>(payload)
    }
}

/// A payload could not be written.
#[derive(Debug, thiserror::Error)]
#[error(
    "the payload of {event_type} v{schema_version} can't be written as JSON; \
     check the `Serialize` of its fields"
)]
pub struct EncodeError {
    /// The event's name.
    pub event_type: Cow<'static, str>,
    /// The event's version.
    pub schema_version: u32,
    /// What serde said.
    #[source]
    pub source: serde_json::Error,
}

/// A payload could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No type in this program reads the version.
    #[error(
        "{event_type} v{schema_version} can't be read here: this program reads v{oldest} to v{newest}; \
         deploy a program that knows the version, or upcast from the older type"
    )]
    UnreadableVersion {
        /// The event's name.
        event_type: &'static str,
        /// The version that arrived.
        schema_version: u32,
        /// The oldest version that can be read.
        oldest: u32,
        /// The newest version that can be read.
        newest: u32,
    },
    /// The payload is not the JSON of its version. The message holds line and column, never the payload.
    #[error(
        "the payload of {event_type} v{schema_version} does not fit its type (line {line}, column {column}); \
         compare the producer's schema with this type"
    )]
    Payload {
        /// The event's name.
        event_type: &'static str,
        /// The version that was expected.
        schema_version: u32,
        /// Line of the payload where reading stopped, from 1.
        line: usize,
        /// Column of the payload where reading stopped, from 1.
        column: usize,
    },
}

impl DecodeError {
    /// The error for a version that `E` does not read.
    pub fn unreadable<E: DomainEvent>(schema_version: u32) -> Self {
        Self::UnreadableVersion {
            event_type: E::NAME,
            schema_version,
            oldest: E::OLDEST_VERSION,
            newest: E::VERSION,
        }
    }

    /// Reads the JSON of exactly `E`'s version.
    ///
    /// # Errors
    /// [`DecodeError::Payload`], which carries the place and not serde's message, since that
    /// may quote the payload.
    pub fn read_json<E: DomainEvent>(payload: &str) -> Result<E, Self> {
        serde_json::from_str(payload).map_err(|source| Self::Payload {
            event_type: E::NAME,
            schema_version: E::VERSION,
            line: source.line(),
            column: source.column(),
        })
    }
}

/// A [`DomainEvent`] whose type is not known at compile time: what an aggregate holds until its commit.
pub trait AnyEvent: Send + Sync {
    /// The event's name.
    fn event_type(&self) -> &'static str;
    /// The event's version.
    fn schema_version(&self) -> u32;
    /// The event's business key, if it has one.
    ///
    /// # Errors
    /// [`KeyError`] when a field's `Display` fails.
    fn business_key(&self) -> Result<Option<String>, KeyError>;
    /// The payload as JSON text.
    ///
    /// # Errors
    /// [`EncodeError`] when serde refuses the value.
    fn encode(&self) -> Result<String, EncodeError>;
    /// The event itself, to downcast.
    fn as_any(&self) -> &dyn Any;
}

impl<E: DomainEvent> AnyEvent for E {
    fn event_type(&self) -> &'static str {
        E::NAME
    }

    fn schema_version(&self) -> u32 {
        E::VERSION
    }

    fn business_key(&self) -> Result<Option<String>, KeyError> {
        DomainEvent::business_key(self)
    }

    fn encode(&self) -> Result<String, EncodeError> {
        DomainEvent::encode(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
