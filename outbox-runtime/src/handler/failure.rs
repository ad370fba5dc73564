use std::error::Error as StdError;
use std::fmt;

use crate::store::Error;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Whether the same message may succeed at another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// Trying again may help: a timeout, a version conflict, a service that is down.
    Transient,
    /// Trying again can't help: the message breaks a rule.
    Permanent,
}

/// Tells permanent failures of your error type from transient ones.
///
/// An error type without it is transient throughout, as trying again never loses anything.
///
/// ```
/// use outbox_runtime::{Classify, FailureKind};
///
/// #[derive(Debug)]
/// enum ReserveError { UnknownSku, WarehouseDown }
///
/// impl Classify for ReserveError {
///     fn failure_kind(&self) -> FailureKind {
///         match self {
///             Self::UnknownSku => FailureKind::Permanent,
///             Self::WarehouseDown => FailureKind::Transient,
///         }
///     }
/// }
/// ```
pub trait Classify {
    /// The kind of this failure.
    fn failure_kind(&self) -> FailureKind;
}

impl Classify for Error {
    fn failure_kind(&self) -> FailureKind {
        match self {
            // What a handler sees of the database may well be gone in a minute, whatever it is;
            // only what this program's own code did wrong stays wrong.
            Self::Encode(_)
            | Self::Key(_)
            | Self::Context(_)
            | Self::Column { .. }
            | Self::UnsavedEvents { .. }
            | Self::NotStored { .. }
            | Self::SavepointClosed => FailureKind::Permanent,
            _ => FailureKind::Transient,
        }
    }
}

/// An attempt to handle a message failed.
#[derive(Debug)]
pub struct HandlerError {
    kind: FailureKind,
    source: BoxError,
}

impl HandlerError {
    /// A failure that trying again may mend.
    pub fn transient(source: impl Into<BoxError>) -> Self {
        Self {
            kind: FailureKind::Transient,
            source: source.into(),
        }
    }

    /// A failure that trying again can't mend.
    pub fn permanent(source: impl Into<BoxError>) -> Self {
        Self {
            kind: FailureKind::Permanent,
            source: source.into(),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Whether another unit of work was faster, so that trying again at once is worth it.
    pub fn is_version_conflict(&self) -> bool {
        crate::unit_of_work::is_version_conflict(&*self.source)
    }

    /// The handler's own error.
    pub fn get_ref(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl StdError for HandlerError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.source()
    }
}

impl Classify for HandlerError {
    fn failure_kind(&self) -> FailureKind {
        self.kind
    }
}
