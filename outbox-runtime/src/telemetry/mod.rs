//! What operators can see of a running program.

pub(crate) mod spans;
pub(crate) mod trace_context;
