use std::time::Duration;

use crate::problem::{self, Problem};
use crate::store::Error;

/// An app could not start, or not end in time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The program does not fit together, or does not fit its database; all problems at once.
    #[error("{}", problem::list(.0))]
    Startup(Vec<Problem>),
    /// The database could not be looked at.
    #[error("the app can't start without its database: {0}; check its URL and that it is up")]
    Database(#[source] Error),
    /// Parts of the app were still busy at the shutdown deadline and were cancelled.
    ///
    /// Nothing is lost: what they were doing is done again after the next start.
    #[error("the app did not come to rest within {deadline:?}: {unfinished}")]
    Deadline {
        /// How long was waited.
        deadline: Duration,
        /// What was still going on.
        unfinished: String,
    },
}
