//! Dead letters and everything else that is parked: list them, look at one, have them tried again,
//! or give them up.
//!
//! Two tables hold what can't go on by itself: `outbox_parked` for messages that the relay could
//! not publish, `inbox_parked` for those that a consumer could not handle. [`DeadLetters`] is the
//! way to them, for both at once. It edits nothing: a letter is published or handled as it was
//! written, and an old version is upcast like any other.
//!
//! - [`list`](DeadLetters::list), [`count`](DeadLetters::count) and [`show`](DeadLetters::show)
//!   read.
//! - [`requeue`](DeadLetters::requeue) and [`discard`](DeadLetters::discard) act, on letters by id
//!   or by filter, and want a [`Note`] of who and why. [`dry_run`](DeadLetters::dry_run) says
//!   beforehand what either would do: it looks at the same rows under the same locks, judges them
//!   by the same code, and rolls back.
//!
//! An act is a [`Run`]: it goes in chunks, each one transaction that also holds the notes. Whoever
//! is killed midway has done whole chunks, and a second run does the rest.
//!
//! # Beside running relays and consumers
//!
//! On PostgreSQL a chunk takes the locks of the shards of its letters, as a relay does when it
//! parks and settles and in the same order, so the two take turns and can't deadlock. Letters of
//! the inbox are locked one by one without waiting: a consumer that handles one at this moment, or
//! another operator, makes it [`Refusal::InWork`]. On SQLite the write transaction is the lock, and
//! who has to wait for it longer than 30 seconds gets [`Error::Busy`](crate::Error::Busy).
//!
//! No lock covers the call to a broker. A relay that is publishing a *failing* message just now
//! notices nothing of an operator until it writes down how that ended:
//!
//! - it was discarded meanwhile: it may be delivered all the same, by the call that is under way,
//!   or, while the broker takes nothing at all, by its repetition; a call that fails on its own
//!   account is not repeated;
//! - it was requeued meanwhile: if the broker took it, it is gone; if not, that attempt is not
//!   counted, and it is tried again at once.
//!
//! A *dead* letter is in nobody's hands, so neither can happen to it.

mod error;
mod filter;
mod letters;
mod note;
mod report;
mod run;

pub use crate::store::{
    Act, FailedAttempt, Letter, LetterContent, LetterDetails, LetterId, LetterIdError, LetterState,
    OperatorNote, Side,
};
pub use error::DeadLetterError;
pub use filter::LetterFilter;
pub use letters::{DeadLetters, Page};
pub use note::{Note, NoteError};
pub use report::{ChunkReport, Outcome, Refusal, Target, Totals};
pub use run::{Run, Selection};
