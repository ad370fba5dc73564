//! Throw-away servers on loopback: real ones, private to whoever starts them.
//!
//! `cargo xtask` starts one of each [`Kind`] for all tests, and a test that wants to kill, pause or
//! restart a server starts one of its own:
//!
//! ```no_run
//! use outbox_servers::{Kind, Server, StartError};
//!
//! let mut server = match Server::start(Kind::Nats) {
//!     Ok(server) => server,
//!     Err(StartError::NotInstalled { .. }) => return Ok(()),
//!     Err(error) => return Err(error),
//! };
//! println!("{}", server.url());
//! server.kill(); // as a crash would
//! server.run()?; // the same port, the same data
//! # Ok::<(), StartError>(())
//! ```
//!
//! No server outlives the process that started it, also if that one is killed: each is told by the
//! kernel (`setpriv --pdeathsig`, where there is one) and its data is removed by the next start.
//! Everything blocks; in async code, use a thread for it (`spawn_blocking`).
//!
//! # What a kill leaves
//!
//! PostgreSQL, NATS, RabbitMQ and Redis keep all that they confirmed when they are killed. The
//! Kafka server of the tests does not, see [`Kind::keeps_confirmed_when_killed`].

pub mod command;
mod docker;
mod error;
mod folder;
mod host;
mod kind;
mod ports;
mod process;
mod recipes;
mod server;
mod setup;
mod source;
mod tls;
mod tree;

pub use error::StartError;
pub use kind::Kind;
pub use server::Server;
pub use setup::Setup;
pub use source::Source;

/// Set for the tests when a test that lacks its server must fail instead of skipping.
pub const REQUIRE_ALL: &str = "OUTBOX_TEST_REQUIRE_ALL";

/// Names the program that serves Kafka's protocol, for tests that start one of their own.
pub const KAFKA_SERVER: &str = "OUTBOX_TEST_KAFKA_SERVER";

/// Names a Python with clients of brokers that are not ours, for tests that hear and ask those.
pub const PYTHON: &str = "OUTBOX_TEST_PYTHON";
