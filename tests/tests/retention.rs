//! What retention removes, and what it must leave, on both databases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "retention/crowd.rs"]
mod crowd;
#[path = "retention/rules.rs"]
mod rules;
