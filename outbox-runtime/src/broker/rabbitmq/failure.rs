use std::time::Duration;

use lapin::ErrorKind;
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::ShortString;

/// What went wrong at RabbitMQ. No text of it holds a payload or a password.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Failure {
    #[error("RabbitMQ did not answer within {0:?}")]
    NoAnswer(Duration),
    #[error(
        "no channel to RabbitMQ was free within {0:?}: the server takes what is published at once too \
         slowly; it is offered again"
    )]
    NoChannel(Duration),
    #[error("RabbitMQ: {0}")]
    Client(#[from] lapin::Error),
    #[error(
        "RabbitMQ takes no messages: {0}; it goes on as soon as the server has memory and disk again"
    )]
    Blocked(&'static str),
    #[error("RabbitMQ has no {what}; {remedy}")]
    Missing { what: String, remedy: &'static str },
    #[error(
        "{what} exists in another form ({answer}); delete it once it is empty, or set the same as it \
         was made with, such as the queue type"
    )]
    Unlike { what: String, answer: String },
    #[error("the name {0}… is longer than the 255 bytes that AMQP allows; shorten it")]
    LongName(String),
    #[error("there is no partition {0}; all services need the same number of partitions")]
    NoPartition(u16),
    #[error("the queue {0} was deleted, or its server went away")]
    QueueGone(String),
    #[error("a message was given back; it comes again, and all that came after it")]
    GivenBack,
    #[error("the channel is closed, so the message comes again")]
    Closed,
}

impl Failure {
    /// Whether what was named is not there (404).
    pub(super) fn is_missing(&self) -> bool {
        self.has_code(&AMQPSoftError::NOTFOUND)
    }

    /// Whether the server does not want it in this form (406).
    pub(super) fn is_precondition(&self) -> bool {
        self.has_code(&AMQPSoftError::PRECONDITIONFAILED)
    }

    fn has_code(&self, code: &AMQPSoftError) -> bool {
        let Self::Client(error) = self else {
            return false;
        };
        matches!(
            error.kind(),
            ErrorKind::ProtocolError(error)
                if matches!(error.kind(), AMQPErrorKind::Soft(soft) if soft == code)
        )
    }
}

/// A name as AMQP carries it.
pub(super) fn short(text: &str) -> Result<ShortString, Failure> {
    ShortString::try_new(text).map_err(|_| Failure::LongName(text.chars().take(40).collect()))
}
