//! What a system has to offer to be measured.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use serde::Serialize;

use crate::database::Database;
use crate::seen::Seen;

/// A queue or an outbox that keeps its messages in PostgreSQL.
///
/// It is called from the main task alone, so its futures need not be `Send`, which those of some systems are not.
#[async_trait(?Send)]
pub trait System {
    /// What there is to know of it.
    fn about(&self) -> About;

    /// Creates its tables, the way that its documentation tells.
    async fn install(&self, database: &Database) -> Result<()>;

    /// Puts messages `0..rows` in.
    async fn fill(&self, database: &Database, rows: u64) -> Result<()>;

    /// Makes what works the messages off, connected but idle.
    async fn drain(
        &self,
        database: &Database,
        seen: Arc<Seen>,
        tuning: Tuning,
    ) -> Result<Box<dyn Drain>>;
}

/// The workers of a system.
#[async_trait(?Send)]
pub trait Drain {
    /// Sets to work and returns. From just before this call the time counts.
    async fn start(&mut self) -> Result<()>;

    /// Ends the workers.
    async fn stop(self: Box<Self>) -> Result<()>;
}

/// What there is to know of a system.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct About {
    /// Its name, which is that of its package.
    #[serde(rename = "system")]
    pub name: &'static str,
    /// Its version in the lock file.
    pub version: &'static str,
    /// Under which it may be used.
    pub license: &'static str,
    /// What its loop does with a row.
    pub work: &'static str,
    /// What was found best.
    pub tuning: Tuning,
    /// Counts the messages that wait.
    #[serde(skip)]
    pub filled: &'static str,
    /// How its tables say that everything is done.
    #[serde(skip)]
    pub done: Done,
}

/// How a system's tables say that everything is done. Queries give a `bigint`.
#[derive(Debug, Clone, Copy)]
pub enum Done {
    /// When this finds no row.
    NothingLeft(&'static str),
    /// When this reaches the number of messages.
    Reached(&'static str),
}

/// The two settings that every system has in some form; each file tells in which.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Tuning {
    /// How much is done at the same time.
    pub workers: u32,
    /// How much is done together.
    pub batch: u32,
}
