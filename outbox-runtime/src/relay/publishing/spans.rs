use tracing::Span;

use crate::broker::PublishError;
use crate::domain::Message;
use crate::telemetry::spans;

/// The spans of the messages in a call to the publisher, by their place; none where nobody wants
/// them.
pub(super) struct PublishSpans(Vec<(usize, Span)>);

impl PublishSpans {
    /// Opens one for each message, which is at that attempt.
    pub(super) fn open(messages: &[Message], attempts: impl Iterator<Item = u32>) -> Self {
        let spans = messages.iter().zip(attempts);
        let spans = spans.map(|(message, attempt)| spans::publish(&message.metadata, attempt));
        Self(
            spans
                .enumerate()
                .filter(|(_, span)| !span.is_disabled())
                .collect(),
        )
    }

    /// The span in which the publisher is called: the message's own where there is one message.
    pub(super) fn around(&self, messages: &[Message]) -> Span {
        match (messages, &*self.0) {
            (_, []) => Span::none(),
            ([_], [(_, span)]) => span.clone(),
            _ => spans::publish_batch(messages.iter().map(|message| &message.metadata)),
        }
    }

    /// Says which messages were not taken, and closes them all.
    pub(super) fn close(self, results: &[Result<(), PublishError>]) {
        for (place, span) in self.0 {
            let Some(Err(error)) = results.get(place) else {
                continue;
            };
            let error_type = match error {
                PublishError::Transient(_) => "transient",
                PublishError::Permanent(_) => "permanent",
                PublishError::Withheld => "withheld",
            };
            spans::failed(&span, error_type);
        }
    }
}
