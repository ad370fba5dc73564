use std::fmt;

/// Any error that a broker's client library gives.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Why one message was not taken by the broker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The broker can't take it now: it is down, overloaded, or its answer was lost.
    #[error("the broker can't take the message now; it will be offered again: {0}")]
    Transient(#[source] BoxError),
    /// The broker will never take this message as it is: too large, not permitted, malformed.
    #[error("the broker refuses the message; change the message or the broker's limits: {0}")]
    Permanent(#[source] BoxError),
    /// It was not tried: an earlier message of its aggregate failed in the same call, or the call's
    /// time was up after earlier ones were taken. In the latter case it is offered again at once.
    #[error("held back: an earlier message of its aggregate failed, or the call's time was up")]
    Withheld,
}

impl PublishError {
    /// A failure that may pass by itself.
    pub fn transient(source: impl Into<BoxError>) -> Self {
        Self::Transient(source.into())
    }

    /// A failure that this message will meet every time.
    pub fn permanent(source: impl Into<BoxError>) -> Self {
        Self::Permanent(source.into())
    }

    /// The result of a message that was not tried.
    pub const fn withheld() -> Self {
        Self::Withheld
    }

    /// Whether the same message may succeed later.
    pub const fn is_transient(&self) -> bool {
        !matches!(self, Self::Permanent(_))
    }

    /// Whether the message was held back behind another one and not tried itself.
    pub const fn is_withheld(&self) -> bool {
        matches!(self, Self::Withheld)
    }
}

/// Why a subscription or an acknowledgement failed.
#[derive(Debug)]
pub struct BrokerError {
    doing: &'static str,
    source: BoxError,
}

impl BrokerError {
    /// Wraps a client library's error; `doing` completes "the broker failed while".
    pub fn new(doing: &'static str, source: impl Into<BoxError>) -> Self {
        Self {
            doing,
            source: source.into(),
        }
    }

    /// What was being done, such as `"subscribing"`.
    pub const fn doing(&self) -> &'static str {
        self.doing
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the broker failed while {}: {}; check that it is reachable",
            self.doing, self.source
        )
    }
}

impl std::error::Error for BrokerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

/// A broker's configuration is no good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// With a sentence that says what to do. Secrets don't belong in it.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}
