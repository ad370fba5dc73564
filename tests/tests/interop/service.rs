//! A service of ours that handles what others publish.

use std::sync::Arc;
use std::time::Duration;

use outbox_runtime::broker::Broker;
use outbox_runtime::inbox::{Consumer, ConsumerOptions};
use outbox_runtime::prelude::*;
use outbox_tests::brokers::TestBroker;
use outbox_tests::brokers::suite::{Ground, Member};
use outbox_tests::{Fixture, sqlite};
use sqlx::Sqlite;
use tokio::task::JoinHandle;

/// What an event is that does not tell its version.
#[domain_event(version = 1, name = "note.taken")]
pub struct NoteTakenV1 {
    pub sequence: i64,
}

/// What is read now.
#[domain_event(version = 2, name = "note.taken", upcast_from = NoteTakenV1)]
pub struct NoteTaken {
    pub sequence: i64,
    pub text: String,
}

impl From<NoteTakenV1> for NoteTaken {
    fn from(old: NoteTakenV1) -> Self {
        Self {
            sequence: old.sequence,
            text: "of version 1".to_owned(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Store(#[from] outbox_runtime::Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Classify for Failed {
    fn failure_kind(&self) -> FailureKind {
        FailureKind::Transient
    }
}

/// Writes down all that it is given. The columns repeat each other for the tests' sake.
#[idempotent_handler(consumer = "interop", key = "{message_id}")]
async fn take_note(
    event: Envelope<NoteTaken>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Failed> {
    let key = event.metadata.aggregate.as_ref();
    sqlx::query("INSERT INTO effect (aggregate, sequence, text, metadata) VALUES (?, ?, ?, ?)")
        .bind(key.map(|aggregate| aggregate.aggregate_id.clone()))
        .bind(event.sequence)
        .bind(event.text.clone())
        .bind(serde_json::to_string(&event.metadata)?)
        .execute(uow.connection().await?)
        .await?;
    Ok(())
}

/// The service, with a database of its own. It ends with the test.
pub(crate) struct Service {
    fixture: Fixture<Sqlite>,
    running: JoinHandle<()>,
}

impl Service {
    pub(crate) async fn start<B: TestBroker>(ground: &Ground<B>) -> Self {
        let fixture = sqlite().await;
        fixture
            .run_sql(
                "CREATE TABLE effect (
                    id INTEGER PRIMARY KEY AUTOINCREMENT, aggregate TEXT, sequence BIGINT NOT NULL,
                    text TEXT NOT NULL, metadata TEXT NOT NULL
                )",
            )
            .await;
        let broker: Arc<dyn Broker> = ground.broker();
        // A group that is new may get only what is published after it was made.
        Member::join(&broker, "test", &["note.taken"])
            .await
            .leave()
            .await;
        let options = ConsumerOptions::new()
            .lease(Duration::from_millis(1500))
            .poll_interval(Duration::from_millis(50));
        let consumer = Consumer::new(fixture.outbox.clone(), broker)
            .with_options(options)
            .select_consumers(|name| name == "interop");
        let running = tokio::spawn(async move {
            consumer.run_until(std::future::pending()).await.unwrap();
        });
        Self { fixture, running }
    }

    pub(crate) async fn effects(&self) -> i64 {
        self.number("SELECT count(*) FROM effect").await
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.fixture.number(sql).await
    }

    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        self.fixture.texts(sql).await
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.running.abort();
    }
}
