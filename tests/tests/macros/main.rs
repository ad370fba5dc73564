//! What the attributes expand to, against the real runtime.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unused, rust_2018_idioms)]
#![warn(clippy::pedantic)]
#![allow(clippy::unused_async)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod aggregates;
mod events;
mod handlers;
mod hygiene;
mod storage;
mod wire_names;
