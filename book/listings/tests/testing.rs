//! Listings of the chapter on testing.

use std::time::Duration;

use book_listings::SqliteFile;
use outbox_runtime::prelude::*;
use outbox_runtime::{Error, Metadata};
use sqlx::Sqlite;
use sqlx::types::time::OffsetDateTime;

typed_id! { pub struct LampId(String); }

#[domain_event(version = 1)]
#[derive(Debug, Clone, PartialEq)]
pub struct LampSwitched {
    pub lamp_id: LampId,
    pub on: bool,
}

#[aggregate(table = "lamps", events(LampSwitched))]
pub struct Lamp {
    id: LampId,
    on: bool,
    root: AggregateRoot,
}

impl Lamp {
    pub fn new(id: &str) -> Self {
        Self {
            id: LampId::from(id.to_owned()),
            on: false,
            root: AggregateRoot::new(),
        }
    }

    pub fn switch(&mut self, on: bool) {
        if self.on == on {
            return;
        }
        self.on = on;
        self.raise(LampSwitched {
            lamp_id: self.id.clone(),
            on,
        });
    }
}

#[aggregate(table = "meters")]
pub struct Meter {
    id: LampId,
    switched: i64,
    root: AggregateRoot,
}

#[idempotent_handler(consumer = "meter.count", key = "{message_id}")]
async fn count(
    event: Envelope<LampSwitched>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    match uow.find::<Meter>(&event.lamp_id).await? {
        Some(mut meter) => {
            meter.switched += 1;
            uow.save(&mut meter).await
        }
        None => {
            let mut meter = Meter {
                id: event.lamp_id.clone(),
                switched: 1,
                root: AggregateRoot::new(),
            };
            uow.add(&mut meter).await
        }
    }
}

const TABLES: &str = "
    CREATE TABLE lamps (id TEXT PRIMARY KEY, \"on\" BOOLEAN NOT NULL, version INTEGER NOT NULL);
    CREATE TABLE meters (id TEXT PRIMARY KEY, switched INTEGER NOT NULL, version INTEGER NOT NULL);
";

// ANCHOR: domain
#[test]
fn switching_twice_is_one_event() {
    let mut lamp = Lamp::new("kitchen");
    lamp.switch(true);
    lamp.switch(true);
    let events: Vec<_> = lamp.root().pending_of::<LampSwitched>().collect();
    assert_eq!(events.len(), 1);
    assert!(events[0].on);
}
// ANCHOR_END: domain

// ANCHOR: contract
#[test]
fn the_payload_is_what_others_rely_on() -> Result<(), Box<dyn std::error::Error>> {
    let event = LampSwitched {
        lamp_id: LampId::from("kitchen".to_owned()),
        on: true,
    };
    let payload = r#"{"lamp_id":"kitchen","on":true}"#;
    assert_eq!(event.encode()?, payload);
    assert_eq!(LampSwitched::decode(1, payload)?, event);
    Ok(())
}
// ANCHOR_END: contract

// ANCHOR: outbox
#[tokio::test]
async fn a_commit_stores_the_event() -> Result<(), Box<dyn std::error::Error>> {
    let file = SqliteFile::with_tables(TABLES).await;
    let outbox = Outbox::new("house", file.pool.clone());
    outbox.migrate().await?;

    let mut lamp = Lamp::new("kitchen");
    lamp.switch(true);
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.add(&mut lamp).await?;
    uow.commit().await?;

    let stored: Vec<(String, String)> =
        sqlx::query_as("SELECT event_type, payload FROM outbox_message ORDER BY id")
            .fetch_all(&file.pool)
            .await?;
    let payload = r#"{"lamp_id":"kitchen","on":true}"#;
    assert_eq!(stored, [("LampSwitched".to_owned(), payload.to_owned())]);
    Ok(())
}
// ANCHOR_END: outbox

// ANCHOR: handler
#[tokio::test]
async fn a_handler_is_a_function() -> Result<(), Box<dyn std::error::Error>> {
    let file = SqliteFile::with_tables(TABLES).await;
    let outbox = Outbox::new("house", file.pool.clone());
    outbox.migrate().await?;

    let event = envelope(LampSwitched {
        lamp_id: LampId::from("kitchen".to_owned()),
        on: true,
    })?;
    for _ in 0..2 {
        let mut uow = outbox
            .begin(MessageContext::caused_by(&event.metadata))
            .await?;
        count(event.clone(), &mut uow).await?;
        uow.commit().await?;
    }
    let switched: i64 = sqlx::query_scalar("SELECT switched FROM meters")
        .fetch_one(&file.pool)
        .await?;
    assert_eq!(switched, 2); // no inbox here: this calls the function, not the consumer
    Ok(())
}

fn envelope<E: DomainEvent>(event: E) -> Result<Envelope<E>, Box<dyn std::error::Error>> {
    let metadata = Metadata {
        message_id: "0195393e-3b5f-7c0e-8d43-111111111111".parse()?,
        event_type: E::NAME.to_owned(),
        schema_version: E::VERSION,
        aggregate: None,
        correlation_id: "a test".to_owned(),
        causation_id: None,
        producer: "a test".to_owned(),
        occurred_at: OffsetDateTime::UNIX_EPOCH,
        traceparent: None,
        tracestate: None,
        headers: Default::default(),
    };
    Ok(Envelope { metadata, event })
}
// ANCHOR_END: handler

// ANCHOR: whole
#[tokio::test]
async fn the_whole_way_from_commit_to_effect() -> Result<(), Box<dyn std::error::Error>> {
    let file = SqliteFile::with_tables(TABLES).await;
    let outbox = Outbox::new("house", file.pool.clone());
    outbox.migrate().await?;
    let mut lamp = Lamp::new("kitchen");
    lamp.switch(true);
    lamp.switch(false);
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.add(&mut lamp).await?;
    uow.commit().await?;

    let running = App::new(outbox)
        .broker(InProcessBroker::new())
        .start()
        .await?;
    let handled = async {
        while running.counts().consumers.handled < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), handled).await?;
    running.shutdown().await?;

    let switched: i64 = sqlx::query_scalar("SELECT switched FROM meters")
        .fetch_one(&file.pool)
        .await?;
    assert_eq!(switched, 2);
    Ok(())
}
// ANCHOR_END: whole
