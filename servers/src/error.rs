//! Why there is no server.

use crate::Kind;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing is there that could be started: a test may skip.
    #[error("{kind} is not installed: {why}")]
    NotInstalled {
        /// What was to be started.
        kind: Kind,
        /// What was looked for.
        why: String,
    },
    /// It is there and does not start, which no test should overlook.
    #[error("{kind} does not start: {why}")]
    Failed {
        /// What was to be started.
        kind: Kind,
        /// What it said.
        why: String,
    },
}
