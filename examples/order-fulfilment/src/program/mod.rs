//! The program around the three contexts: orders in, events through, books out.

mod args;
mod database;
mod progress;
mod reconciliation;
mod relays;
mod rough_broker;
mod run;
mod table;

pub(crate) use args::Args;
pub(crate) use run::run;
