use super::note::NoteError;
use crate::store::Error;

/// Letters can't be read, or not be acted on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeadLetterError {
    /// A number is out of its range.
    #[error("{what} is {value} and has to lie between 1 and {most}")]
    Range {
        /// Of what.
        what: &'static str,
        /// The number.
        value: u32,
        /// The greatest that can be used; the least is 1.
        most: u32,
    },
    /// A text to filter by holds a NUL character.
    #[error("{what} holds a NUL character, which no stored text does; leave it out")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// The note can't be used.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// Letters changed under the locks, by somebody who does not take them. The chunk was rolled
    /// back.
    #[error(
        "{found} of {expected} letters were still there to {act}, so nothing of this chunk was \
         done; look for a program that changes the parked tables by itself, and try again"
    )]
    Changed {
        /// What was to be done.
        act: &'static str,
        /// To how many.
        expected: usize,
        /// How many were there.
        found: u64,
    },
    /// The database failed. Chunks that were reported before are done.
    #[error(transparent)]
    Store(#[from] Error),
}
