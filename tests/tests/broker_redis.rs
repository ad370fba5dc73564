//! The suite of brokers against a real one.
