//! The ports to the database: what every backend offers, and the records that pass through.

mod admin;
mod backend;
mod backlog;
mod dead_letters;
mod error;
mod inbox;
mod inbox_parking;
mod letter;
mod mapping;
mod migration;
mod parking;
pub(crate) mod partitions;
mod persist;
mod relay;
mod render;
mod retention;
mod schedule;
mod stored_message;
mod typed_id;
mod wake;
mod write;
mod writers;

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

pub use admin::{AdminStore, ParkedCount};
pub use backend::{Backend, Values};
pub use backlog::{Backlog, BacklogStore, OldestPending};
pub use dead_letters::{Criteria, DeadLetterStore, LetterRequest, NoteRow};
pub(crate) use error::is_serialization_failure;
pub use error::{ConflictMark, Error};
pub use inbox::{Claim, Claimed, InboxStore};
pub use inbox_parking::{
    FailedAgain, InboxParkingStore, Parked, ParkedHead, ParkedState, TakenOut, ToSetAside, Trouble,
};
pub use letter::{
    Act, FailedAttempt, Letter, LetterContent, LetterDetails, LetterId, LetterIdError, LetterState,
    OperatorNote, Side,
};
pub(crate) use mapping::quote;
pub use mapping::{TableMapping, ValueObject, ValueObjectRow};
pub use migration::Migration;
pub use migration::MigrationStore;
pub(crate) use migration::compare;
pub use parking::{
    ATTEMPTS_KEPT, DueRequest, DueRow, FailedRow, LaneOutcome, ParkedFailure, ParkedLane,
    ParkingStore, ToPark,
};
pub use partitions::{Member, Membership, PartitionStore};
pub use persist::{Change, CustomPersistence, Persist, RowLock, Stores};
pub(crate) use relay::Arriving;
pub use relay::{
    JournalEntry, LogRead, LogRequest, LogRow, Passed, RelayStore, Renewal, ShardLease, ShardSet,
};
pub use render::{Names, NamesError};
pub use retention::{Finished, RetentionStore, Sweep, Swept};
pub use schedule::{Due, Moved, ScheduleStore, ScheduledRow};
pub use stored_message::{LogContent, Unreadable};
pub use wake::Wake;
pub(crate) use write::key_taken;
pub use write::{EventRow, RowWrite, SharedColumns, WriteBatch, WriteStore};
pub use writers::{Snapshot, Writers, Xid};
