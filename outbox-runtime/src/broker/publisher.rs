use std::sync::Arc;

use async_trait::async_trait;

use super::error::PublishError;
use crate::domain::Message;

/// Takes messages to a broker.
///
/// A relay calls [`publish`](Self::publish) from several tasks at once, but never with messages of
/// one ordering key ([`Metadata::ordering_key`](crate::domain::Metadata::ordering_key)) in two
/// calls at a time, so an adapter only has to keep order within a call.
///
/// ```
/// use outbox_runtime::broker::{PublishError, Publisher};
/// use outbox_runtime::domain::Message;
///
/// /// Writes each message's type to standard output.
/// struct Printer;
///
/// #[async_trait::async_trait]
/// impl Publisher for Printer {
///     async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
///         messages
///             .iter()
///             .map(|message| {
///                 println!("{}", message.metadata.event_type);
///                 Ok(())
///             })
///             .collect()
///     }
/// }
/// ```
#[async_trait]
pub trait Publisher: Send + Sync {
    /// Offers messages to the broker and says of each whether the broker has taken it.
    ///
    /// Result `i` belongs to message `i`. `Ok` means that the broker has confirmed the message
    /// and will keep it; whatever is not certain is [`PublishError::Transient`], and the same
    /// message, with the same id, is offered again. A broker that recognises such a repetition as
    /// a duplicate has taken it: that is `Ok`.
    ///
    /// Messages of one ordering key must reach the broker in the slice's order, and once one of
    /// them failed the later ones of its key must not be sent: their result is
    /// [`PublishError::withheld`].
    ///
    /// # Errors
    /// An error belongs to its message alone. A call that panics, or returns fewer results than
    /// it was given messages, counts as a failure of those without a result.
    ///
    /// # Cancel safety
    /// The call may be dropped at any point (a timeout, a shutdown). The messages in it then
    /// count as not published and are offered again.
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>>;
}

#[async_trait]
impl<P: Publisher + ?Sized> Publisher for Arc<P> {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        (**self).publish(messages).await
    }
}
