//! Placeholder replaced by the runtime.
