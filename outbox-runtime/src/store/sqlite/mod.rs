//! The backend on SQLite.

mod backend;
mod migrations;
mod write;

pub(crate) use backend::Queries;
