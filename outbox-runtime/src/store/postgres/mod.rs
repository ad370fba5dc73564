//! The backend on PostgreSQL.

mod backend;
mod migrations;
mod write;

pub(crate) use backend::Queries;
