//! The place that joins everything: handlers, relay and consumers under one supervisor.

mod builder;
mod checks;
mod error;
mod running;
mod supervisor;

pub use builder::App;
pub use error::AppError;
pub use running::{AppCounts, RunningApp};
