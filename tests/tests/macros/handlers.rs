use std::fmt;

use outbox_runtime::handler::{HandlerCall, HandlerRegistration, StateRequirement, States};
use outbox_runtime::prelude::*;
use outbox_runtime::{AggregateRef, Message, MessageId};
use outbox_tests::{Fixture, TestDatabase, on_both_databases};
use sqlx::Sqlite;
use time::OffsetDateTime;
use uuid::Uuid;

on_both_databases!(a_generic_handler_serves_each_database);

#[domain_event(version = 1, name = "handlers.counted")]
pub struct CountedV1 {
    pub by: i64,
}

#[domain_event(version = 2, name = "handlers.counted", upcast_from = CountedV1)]
pub struct Counted {
    pub by: i64,
    pub place: Place,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub struct Place {
    pub city: String,
    pub floor: Option<i64>,
}

impl From<CountedV1> for Counted {
    fn from(old: CountedV1) -> Self {
        Self {
            by: old.by,
            place: Place {
                city: "a:b".to_owned(),
                floor: None,
            },
        }
    }
}

#[derive(Clone)]
pub struct Limit(i64);

#[derive(Clone)]
pub struct Name(&'static str);

#[derive(Debug)]
pub enum CountError {
    TooMany,
    Busy,
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for CountError {}

impl Classify for CountError {
    fn failure_kind(&self) -> FailureKind {
        match self {
            Self::TooMany => FailureKind::Permanent,
            Self::Busy => FailureKind::Transient,
        }
    }
}

/// Counts.
#[idempotent_handler(
    consumer = "macros.count",
    key = "{message_id}|{correlation_id}|{causation_id}|{aggregate_id}|{aggregate_type}|{event_type}|{schema_version}|{sequence}"
)]
async fn count(
    Envelope { event, .. }: Envelope<Counted>,
    uow: &mut UnitOfWork<'_, Sqlite>,
    State(Limit(limit)): State<Limit>,
    name: State<Name>,
) -> Result<(), CountError> {
    assert_eq!(name.0.0, "n");
    if event.by > limit {
        return Err(CountError::TooMany);
    }
    uow.connection().await.map_err(|_| CountError::Busy)?;
    Ok(())
}

#[idempotent_handler(
    consumer = "macros.places",
    key = "{event.place.city}:{event.place.floor}",
    versions = 2
)]
async fn places<DB>(
    event: Envelope<Counted>,
    _uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), std::io::Error>
where
    DB: TestDatabase,
{
    if event.by == 0 {
        return Err(std::io::Error::other("zero"));
    }
    Ok(())
}

#[idempotent_handler(key = "{message_id}", versions = 1..=1)]
pub(crate) async fn only_the_old(
    _: Envelope<Counted>,
    _: &mut UnitOfWork<'_, sqlx::Postgres>,
) -> Result<(), String> {
    Err("an error of text".to_owned())
}

fn handler(consumer: &str) -> &'static HandlerRegistration {
    let mut found = HandlerRegistration::all().filter(|handler| handler.consumer == consumer);
    let handler = found.next().expect(consumer);
    assert!(found.next().is_none());
    handler
}

fn message(version: u32, payload: &str) -> Message {
    Message {
        metadata: Metadata {
            message_id: MessageId::from_uuid(Uuid::nil()),
            event_type: "handlers.counted".to_owned(),
            schema_version: version,
            aggregate: Some(AggregateRef {
                aggregate_type: "Counter".to_owned(),
                aggregate_id: "c|1".to_owned(),
                sequence: 9,
            }),
            correlation_id: "corr".to_owned(),
            causation_id: None,
            producer: "test".to_owned(),
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            traceparent: None,
            tracestate: None,
            headers: std::collections::BTreeMap::default(),
        },
        payload: payload.to_owned(),
    }
}

#[test]
fn what_is_registered() {
    let count = handler("macros.count");
    assert_eq!(count.event_type, "handlers.counted");
    assert_eq!(count.versions, (1, 2));
    assert!(count.function.ends_with("::handlers::count"));
    assert!(count.file.ends_with("handlers.rs") && count.line > 0);
    assert_eq!(
        (count.states)(),
        [
            StateRequirement::of::<Limit>(),
            StateRequirement::of::<Name>()
        ]
    );
    assert!(count.entry::<Sqlite>().is_some());
    assert!(count.entry::<sqlx::Postgres>().is_none());
    assert_eq!(handler("macros.places").versions, (2, 2));
    let old = handler("only_the_old");
    assert_eq!(old.versions, (1, 1));
    assert!(old.entry::<sqlx::Postgres>().is_some() && old.entry::<Sqlite>().is_none());
}

#[test]
fn keys() {
    let one = message(1, r#"{"by":1}"#);
    assert_eq!(
        (handler("macros.count").key)(&one).unwrap(),
        "00000000-0000-0000-0000-000000000000|corr|%-|c%7C1|Counter|handlers.counted|1|9"
    );
    let places = handler("macros.places").key;
    assert_eq!(places(&one).unwrap(), "a%3Ab:%-");
    let two = message(2, r#"{"by":1,"place":{"city":"Bonn","floor":-1}}"#);
    assert_eq!(places(&two).unwrap(), "Bonn:-1");
    let mut orphan = one;
    orphan.metadata.aggregate = None;
    assert_eq!(
        (handler("macros.count").key)(&orphan).unwrap(),
        "00000000-0000-0000-0000-000000000000|corr|%-|%-|%-|handlers.counted|1|%-"
    );
    let unreadable = places(&message(2, "{}")).unwrap_err();
    assert_eq!(unreadable.kind(), FailureKind::Permanent);
}

async fn call<DB: TestDatabase>(
    fixture: &Fixture<DB>,
    consumer: &str,
    message: &Message,
    states: &States,
) -> Result<(), HandlerError> {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let entry = handler(consumer).entry::<DB>().unwrap();
    let call = (entry.call)(HandlerCall {
        message,
        unit_of_work: &mut uow,
        states,
    });
    call.await
}

#[tokio::test]
async fn states_and_failures() {
    let fixture = outbox_tests::sqlite().await;
    let mut states = States::default();
    states.insert(Limit(5));
    let small = message(1, r#"{"by":5}"#);
    let missing = call(&fixture, "macros.count", &small, &states)
        .await
        .unwrap_err();
    assert_eq!(missing.kind(), FailureKind::Permanent);
    assert!(missing.to_string().contains("Name"), "{missing}");
    states.insert(Name("n"));
    call(&fixture, "macros.count", &small, &states)
        .await
        .unwrap();
    let large = message(1, r#"{"by":6}"#);
    let failed = call(&fixture, "macros.count", &large, &states)
        .await
        .unwrap_err();
    assert_eq!(failed.kind(), FailureKind::Permanent);
    assert!(failed.get_ref().downcast_ref::<CountError>().is_some());
    let unreadable = call(&fixture, "macros.count", &message(7, "{}"), &states)
        .await
        .unwrap_err();
    assert_eq!(unreadable.kind(), FailureKind::Permanent);
}

async fn a_generic_handler_serves_each_database<DB: TestDatabase>(fixture: Fixture<DB>) {
    let states = States::default();
    let place = r#""place":{"city":"Bonn","floor":null}"#;
    let one = message(2, &format!("{{\"by\":1,{place}}}"));
    call(&fixture, "macros.places", &one, &states)
        .await
        .unwrap();
    let zero = message(2, &format!("{{\"by\":0,{place}}}"));
    let failed = call(&fixture, "macros.places", &zero, &states)
        .await
        .unwrap_err();
    assert_eq!(failed.kind(), FailureKind::Transient);
}

#[tokio::test]
async fn the_function_can_still_be_called() {
    let fixture = outbox_tests::sqlite().await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let envelope = Envelope::open(&message(1, r#"{"by":1}"#)).unwrap();
    count(envelope, &mut uow, State(Limit(1)), State(Name("n")))
        .await
        .unwrap();
    let _: fn(_, _) -> _ = only_the_old;
}
