//! Stage changes and events, and commit them together.

mod outbox;
mod retry;
mod session;
mod stage;
mod work;

pub use outbox::{Outbox, OutboxBuilder};
pub use retry::is_version_conflict;
pub(crate) use session::WriteTransaction;
pub use work::{Savepoint, UnitOfWork};
