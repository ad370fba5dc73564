//! Removes what is finished, by age, in small steps.
//!
//! The outbox loses only what lies under the position of every shard, so nothing that a relay could
//! still need. What goes is forgotten: a business key is free again when its row is gone, and a
//! message that comes again after its inbox row went is handled again. So keep the inbox longer
//! than your broker may repeat a message, and the outbox longer than a business key has to be unique.

mod cleaner;
mod options;

pub use cleaner::Cleaner;
pub use options::{Keep, Removed, Retention, RetentionError};
