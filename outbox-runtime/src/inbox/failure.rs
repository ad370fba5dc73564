use std::any::Any;

use crate::domain::Metadata;
use crate::error_text::with_causes;
use crate::handler::{Classify, FailureKind, HandlerError};
use crate::store::Error;

/// Why an attempt left no effect.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    /// Another unit of work was faster: trying again at once is worth it.
    pub(super) is_version_conflict: bool,
    /// The commit's answer was lost: the effect may be there after all.
    pub(super) is_in_doubt: bool,
    /// What happened, with all causes.
    pub(super) reason: String,
}

impl Failure {
    /// The handler, or its key, said no.
    pub(super) fn of_handler(error: &HandlerError) -> Self {
        Self {
            kind: error.kind(),
            is_version_conflict: error.is_version_conflict(),
            is_in_doubt: false,
            reason: with_causes(error),
        }
    }

    /// The database or the unit of work failed before the commit.
    pub(super) fn of_store(error: &Error) -> Self {
        Self {
            kind: error.failure_kind(),
            is_version_conflict: error.is_version_conflict(),
            is_in_doubt: false,
            reason: with_causes(error),
        }
    }

    /// The commit failed.
    pub(super) fn of_commit(error: &Error) -> Self {
        Self {
            is_in_doubt: matches!(error, Error::Database { .. }),
            ..Self::of_store(error)
        }
    }

    /// No handler here takes a parked message.
    pub(super) fn without_handler(metadata: &Metadata) -> Self {
        Self {
            kind: FailureKind::Permanent,
            is_version_conflict: false,
            is_in_doubt: false,
            reason: unreadable(metadata),
        }
    }

    /// What a span says of it.
    pub(super) const fn name(&self) -> &'static str {
        match self.kind {
            _ if self.is_version_conflict => "version_conflict",
            FailureKind::Permanent => "permanent",
            FailureKind::Transient => "transient",
        }
    }

    pub(super) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let message = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        Self {
            kind: FailureKind::Transient,
            is_version_conflict: false,
            is_in_doubt: false,
            reason: format!("the handler panicked: {message}"),
        }
    }
}

/// Why a message of a version that nobody reads is set aside.
pub(super) fn unreadable(metadata: &Metadata) -> String {
    format!(
        "no handler of the consumer takes {} v{}; deploy one and requeue the message",
        metadata.event_type, metadata.schema_version
    )
}
