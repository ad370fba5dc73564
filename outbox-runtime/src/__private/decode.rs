use crate::domain::{DecodeError, DomainEvent, Envelope, Message, Raises};
use crate::handler::HandlerError;

/// Opens the envelope of a message; one that can't be read stays so.
///
/// # Errors
/// A permanent [`HandlerError`].
pub fn open<E: DomainEvent>(message: &Message) -> Result<Envelope<E>, HandlerError> {
    Envelope::open(message).map_err(HandlerError::permanent)
}

/// What the type of a newer version must be able to do.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be made of `{Old}`",
    label = "older payloads are read as this type and converted",
    note = "say how the old version becomes the new one: `impl From<{Old}> for {Self}`"
)]
pub trait UpcastFrom<Old>: From<Old> {}

#[diagnostic::do_not_recommend]
impl<Old, E: From<Old>> UpcastFrom<Old> for E {}

/// What an event that an aggregate declares is; the aggregate is found by the event and not the
/// other way round, or rustc would take a single declared event for the only possible one.
pub trait RaisedBy<A> {}

impl<A: Raises<E>, E: DomainEvent> RaisedBy<A> for E {}

/// Reads a payload of `E` or, one version at a time, of the types before it.
///
/// # Errors
/// [`DecodeError`] when the payload is not one of `E`'s versions.
pub fn upcast<Old: DomainEvent, E: DomainEvent + UpcastFrom<Old>>(
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
