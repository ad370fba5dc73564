//! The backend on PostgreSQL.

mod admin;
mod backend;
mod backlog;
mod dead_letters;
mod events;
mod inbox;
mod inbox_parking;
mod migrations;
mod parking;
mod partitions;
mod relay;
mod retention;
mod schedule;
mod write;

pub(crate) use backend::Queries;
