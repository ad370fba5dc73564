//! The cells on real brokers: the same workers and the same counts, on PostgreSQL, with a server of
//! NATS, Kafka, RabbitMQ or Redis that is killed, stopped and started as the workers are.

mod cells;
mod client;
mod consumers;
mod outages;
mod publishing;
mod server;

pub use cells::BrokerFault;
pub use client::open_broker;
pub use server::{BROKERS, BrokerServer};
