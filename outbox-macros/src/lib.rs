//! The attributes of `outbox-runtime`.
