use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::store::Finished;

const CHUNK: RangeInclusive<u32> = 1..=10_000;
/// Longer ages are as good as this one, and databases can count it.
const LONGEST: Duration = Duration::from_secs(1_000 * 366 * 24 * 3_600);

/// What stays of a table.
///
/// ```
/// use std::time::Duration;
/// use outbox_runtime::retention::Keep;
///
/// let week = Keep::for_age(Duration::from_secs(7 * 24 * 3600)).at_least(10_000);
/// # let _ = week;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub(super) age: Duration,
    pub(super) floor: u32,
}

impl Keep {
    /// Rows that are younger stay, by the database's clock.
    pub fn for_age(age: Duration) -> Self {
        Self {
            age: age.min(LONGEST),
            floor: 0,
        }
    }

    /// So many of the newest rows stay too, whatever their age.
    #[must_use]
    pub fn at_least(mut self, rows: u32) -> Self {
        self.floor = rows;
        self
    }
}

/// What is removed, and how. Nothing is, unless it is told.
///
/// ```
/// use std::time::Duration;
/// use outbox_runtime::retention::{Keep, Retention};
///
/// let day = Duration::from_secs(24 * 3600);
/// let retention = Retention::new()
///     .outbox(Keep::for_age(7 * day))
///     .journal(Keep::for_age(7 * day))
///     .inbox(Keep::for_age(30 * day))
///     .dead_letters(Keep::for_age(90 * day));
/// assert!(retention.check().is_ok());
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Retention {
    pub(super) outbox: Option<Keep>,
    pub(super) journal: Option<Keep>,
    pub(super) inbox: Option<Keep>,
    pub(super) dead_letters: Option<Keep>,
    pub(super) archive: bool,
    pub(super) how: How,
}

/// The size of the steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub(super) chunk: u32,
    pub(super) pause: Duration,
    pub(super) interval: Duration,
}

impl Default for How {
    fn default() -> Self {
        Self {
            chunk: 1_000,
            pause: Duration::from_millis(100),
            interval: Duration::from_secs(60),
        }
    }
}

impl Retention {
    /// Removes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes events that are published, by the time at which they occurred.
    pub fn outbox(mut self, keep: Keep) -> Self {
        self.outbox = Some(keep);
        self
    }

    /// Removes entries of the journal, by the time of publishing.
    pub fn journal(mut self, keep: Keep) -> Self {
        self.journal = Some(keep);
        self
    }

    /// Removes what consumers have handled, by the time at which they did.
    pub fn inbox(mut self, keep: Keep) -> Self {
        self.inbox = Some(keep);
        self
    }

    /// Removes dead letters that operators discarded, by the time at which they did, and then the
    /// operators' notes about letters of which nothing is left. What is parked stays, dead or not.
    pub fn dead_letters(mut self, keep: Keep) -> Self {
        self.dead_letters = Some(keep);
        self
    }

    /// Moves rows to archive tables (`outbox_message_archive`, `outbox_journal_archive`,
    /// `inbox_message_archive`, `outbox_discarded_archive`, `outbox_operator_note_archive`) instead
    /// of deleting them.
    pub fn archive(mut self) -> Self {
        self.archive = true;
        self
    }

    /// How many rows one statement looks at: 1 to 10,000; 1,000 if not set.
    pub fn chunk(mut self, rows: u32) -> Self {
        self.how.chunk = rows;
        self
    }

    /// How long to leave the database to others between two statements. 100 ms if not set.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.how.pause = pause;
        self
    }

    /// How long to wait after everything was gone through. A minute if not set.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.how.interval = interval;
        self
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`RetentionError`] when they can't be used.
    pub fn check(&self) -> Result<(), RetentionError> {
        if CHUNK.contains(&self.how.chunk) {
            Ok(())
        } else {
            Err(RetentionError(self.how.chunk))
        }
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = (Finished, Keep)> {
        [
            self.outbox.map(|keep| (Finished::Outbox, keep)),
            self.journal.map(|keep| (Finished::Journal, keep)),
            self.inbox.map(|keep| (Finished::Inbox, keep)),
            self.dead_letters.map(|keep| (Finished::Discarded, keep)),
            self.dead_letters.map(|keep| (Finished::Notes, keep)),
        ]
        .into_iter()
        .flatten()
    }
}

/// How many rows were deleted or archived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// Of the outbox.
    pub outbox: u64,
    /// Of the journal.
    pub journal: u64,
    /// Of the inbox.
    pub inbox: u64,
    /// Discarded dead letters.
    pub discarded: u64,
    /// Notes of operators.
    pub notes: u64,
}

impl Removed {
    pub(super) fn add(&mut self, table: Finished, rows: u64) {
        let count = match table {
            Finished::Outbox => &mut self.outbox,
            Finished::Journal => &mut self.journal,
            Finished::Inbox => &mut self.inbox,
            Finished::Discarded => &mut self.discarded,
            Finished::Notes => &mut self.notes,
        };
        *count += rows;
    }
}

/// A retention can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionError(u32);

impl fmt::Display for RetentionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the retention can't be used: chunk is {} and has to lie between {} and {}",
            self.0,
            CHUNK.start(),
            CHUNK.end()
        )
    }
}

impl std::error::Error for RetentionError {}
