//! The backend on SQLite.

mod admin;
mod backend;
mod backlog;
mod dead_letters;
mod inbox;
mod inbox_parking;
mod migrations;
mod parking;
mod partitions;
mod reading;
mod relay;
mod retention;
mod schedule;
mod write;

pub(crate) use backend::Queries;
