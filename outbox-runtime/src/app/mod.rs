//! The place that joins everything: handlers, relay and consumers under one supervisor.

mod builder;
mod checks;
mod database_check;
mod error;
mod running;
#[cfg(feature = "metrics")]
mod sampling;
mod supervisor;

pub use builder::App;
pub use error::AppError;
pub use running::{AppCounts, RunningApp};
