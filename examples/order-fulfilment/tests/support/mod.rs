//! Starts the program as its users do, and reads what it prints for machines.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

use std::process::{Command, Output};

use serde_json::Value;
use sqlx::{Connection, Executor, PgConnection};

/// The program with `--json` on a database.
pub fn program(database: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_order-fulfilment"));
    command.args(["--json", "--database", database]);
    command
}

/// Runs it to its end and expects balanced books.
pub fn balanced(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let books = books(&output);
    assert_eq!(books["balanced"], true, "{books:#}");
    assert_eq!(output.status.code(), Some(0));
    books
}

/// The reconciliation that a run printed.
pub fn books(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "no reconciliation ({error}), {}:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// An SQLite file in a folder of its own, gone when dropped.
pub struct SqliteFile(tempfile::TempDir);

impl SqliteFile {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn url(&self) -> String {
        self.0.path().join("shop.db").to_str().unwrap().to_owned()
    }
}

/// A database of its own on the PostgreSQL server of the tests.
pub struct PostgresDatabase {
    server: String,
    name: String,
}

impl PostgresDatabase {
    /// `None`, and a line that says so, where the tests have no server and need not have one.
    pub async fn new() -> Option<Self> {
        let Ok(server) = std::env::var("OUTBOX_TEST_POSTGRES_URL") else {
            assert!(
                std::env::var_os("OUTBOX_TEST_REQUIRE_ALL").is_none(),
                "OUTBOX_TEST_POSTGRES_URL is not set and every server is required"
            );
            eprintln!("skipped on PostgreSQL: OUTBOX_TEST_POSTGRES_URL is not set");
            return None;
        };
        let name = format!("shop_{:016x}", fastrand::u64(..));
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        connection.execute(sql).await.unwrap();
        Some(Self { server, name })
    }

    pub fn url(&self) -> String {
        let (address, parameters) = match self.server.split_once('?') {
            Some((address, parameters)) => (address, format!("?{parameters}")),
            None => (self.server.as_str(), String::new()),
        };
        let (scheme, rest) = address.split_once("://").unwrap();
        let host = rest.split('/').next().unwrap();
        format!("{scheme}://{host}/{}{parameters}", self.name)
    }

    pub async fn drop(self) {
        let mut connection = PgConnection::connect(&self.server).await.unwrap();
        let sql = sqlx::AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.name));
        connection.execute(sql).await.unwrap();
    }
}
