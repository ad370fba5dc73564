use crate::domain::{DecodeError, DomainEvent, Envelope, Message};
use crate::handler::HandlerError;

/// Opens the envelope of a message; one that can't be read stays so.
///
/// # Errors
/// A permanent [`HandlerError`].
pub fn open<E: DomainEvent>(message: &Message) -> Result<Envelope<E>, HandlerError> {
    Envelope::open(message).map_err(HandlerError::permanent)
}

/// Reads a payload of `E` or, one version at a time, of the types before it.
///
/// # Errors
/// [`DecodeError`] when the payload is not one of `E`'s versions.
pub fn upcast<Old: DomainEvent, E: DomainEvent + From<Old>>(
    schema_version: u32,
    payload: &str,
) -> Result<E, DecodeError> {
    if schema_version == E::VERSION {
        DecodeError::read_json::<E>(payload)
    } else if (E::OLDEST_VERSION..E::VERSION).contains(&schema_version) {
        Old::decode(schema_version, payload).map(E::from)
    } else {
        Err(DecodeError::unreadable::<E>(schema_version))
    }
}
