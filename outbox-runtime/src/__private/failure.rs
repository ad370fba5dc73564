use std::error::Error;

use crate::handler::{Classify, FailureKind, HandlerError};

/// A handler's error, while the compiler finds out whether it classifies itself.
///
/// Generated code calls `(&KindOf(&error)).failure_kind()` with both traits in scope: method lookup
/// prefers [`KindKnown`], and comes to [`KindUnknown`] by one more reference.
pub struct KindOf<'a, E>(pub &'a E);

/// For errors that classify themselves.
pub trait KindKnown {
    /// What the error says.
    fn failure_kind(&self) -> FailureKind;
}

impl<E: Classify> KindKnown for KindOf<'_, E> {
    fn failure_kind(&self) -> FailureKind {
        self.0.failure_kind()
    }
}

/// For all other errors.
pub trait KindUnknown {
    /// Transient, as trying again never loses anything.
    fn failure_kind(&self) -> FailureKind;
}

impl<E> KindUnknown for &KindOf<'_, E> {
    fn failure_kind(&self) -> FailureKind {
        FailureKind::Transient
    }
}

/// What a handler may return as its error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the error of a handler",
    label = "not an error that can be kept",
    note = "implement `std::error::Error` for it (and let it be `Send + Sync`), for example by `#[derive(thiserror::Error)]`"
)]
pub trait HandlerFailure: Into<Box<dyn Error + Send + Sync>> {}

#[diagnostic::do_not_recommend]
impl<E: Into<Box<dyn Error + Send + Sync>>> HandlerFailure for E {}

/// The failure of a handler.
pub fn failed<E: HandlerFailure>(kind: FailureKind, error: E) -> HandlerError {
    match kind {
        FailureKind::Transient => HandlerError::transient(error),
        FailureKind::Permanent => HandlerError::permanent(error),
    }
}
