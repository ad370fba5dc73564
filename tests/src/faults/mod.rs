//! The fault matrix: workers in processes of their own, a broker that survives them, and a database
//! that is made to suffer. Each run ends with counts from the database's own tables.
//!
//! What the parts are: [`Stage`] holds a database, a broker and workers; a [`Fault`] is what goes
//! wrong on it, and a `real::BrokerFault` what goes wrong with a real broker instead
//! of the harness's; [`Verdict`] is what the run came to. The workers' side is the program `faults`.

mod accounts;
mod arena;
mod books;
mod broker;
mod cells;
mod database;
mod logs;
mod on_postgres;
mod on_sqlite;
mod plan;
#[cfg(feature = "brokers")]
pub mod real;
mod soak;
mod stage;
mod verdict;
mod wire;
mod worker;

pub use accounts::account;
pub use arena::{Arena, ClockFile, Needs, NotExercised};
pub use books::{Standing, room};
pub use broker::{Broker, BrokerClient, Mood, Rates};
pub use cells::Fault;
pub use database::FaultDb;
pub use plan::{BrokerAddress, PLAN, Plan, Sabotage};
pub use soak::soak;
pub use stage::{STANDSTILL, Settings, Stage, Watcher};
pub use verdict::Verdict;
pub use wire::{Traffic, Way, Wire};
pub use worker::{Start, Worker};
