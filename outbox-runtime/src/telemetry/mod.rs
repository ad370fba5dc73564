//! What operators can see of a running program.

pub mod metrics;
pub(crate) mod spans;
pub(crate) mod trace_context;
