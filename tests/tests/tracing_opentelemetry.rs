//! With the feature `opentelemetry`: who is whose child, and what the envelopes carry.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "tracing_opentelemetry/exported.rs"]
mod exported;
#[path = "tracing_opentelemetry/parents.rs"]
mod parents;
#[path = "tracing_opentelemetry/retries.rs"]
mod retries;
#[path = "tracing/shop.rs"]
mod shop;
