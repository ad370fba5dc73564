//! What the spans say, and that the trace context of a message outlives its failures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "tracing/contexts.rs"]
mod contexts;
#[path = "tracing/payloads.rs"]
mod payloads;
#[path = "tracing/recorder.rs"]
mod recorder;
#[path = "tracing/shop.rs"]
mod shop;
#[path = "tracing/spans.rs"]
mod spans;
