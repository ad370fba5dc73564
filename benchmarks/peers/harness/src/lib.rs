//! Fills a system with messages, lets it drain them, asks its tables and checks the result.
//!
//! A program that measures systems is its list of [`System`]s and a call of [`main`].

mod bench;
mod cli;
mod database;
mod elsewhere;
mod message;
pub mod rows;
mod seen;
pub mod smoke;
mod system;

pub use cli::main;
pub use database::Database;
pub use elsewhere::Elsewhere;
pub use message::Message;
pub use seen::Seen;
pub use system::{About, Done, Drain, System, Tuning};
