//! Stage changes and events, and commit them together.

mod leave;
mod load;
mod notices;
mod outbox;
mod retry;
mod savepoint;
mod schedule;
mod session;
mod stage;
mod work;
mod writing;

pub(crate) use leave::Written;
pub use outbox::{Outbox, OutboxBuilder};
pub use retry::is_version_conflict;
pub use savepoint::Savepoint;
pub(crate) use session::WriteTransaction;
pub use work::UnitOfWork;
