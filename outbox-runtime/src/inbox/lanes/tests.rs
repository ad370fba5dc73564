#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use time::OffsetDateTime;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::*;
use crate::broker::BrokerError;
use crate::domain::{AggregateRef, Metadata};

#[derive(Clone, Default)]
struct Answers {
    acked: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

struct Counted(Answers);

#[async_trait]
impl Acknowledge for Counted {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        self.0.acked.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }
}

fn message(aggregate_id: &str) -> Message {
    let metadata = Metadata {
        message_id: MessageId::from_uuid(Uuid::now_v7()),
        event_type: "Paid".to_owned(),
        schema_version: 1,
        aggregate: Some(AggregateRef {
            aggregate_type: "Order".to_owned(),
            aggregate_id: aggregate_id.to_owned(),
            sequence: 1,
        }),
        correlation_id: "c-1".to_owned(),
        causation_id: None,
        producer: "tests".to_owned(),
        occurred_at: OffsetDateTime::UNIX_EPOCH,
        traceparent: None,
        tracestate: None,
        headers: BTreeMap::new(),
    };
    Message {
        metadata,
        payload: "{}".to_owned(),
    }
}

struct Fixture {
    lanes: Arc<Lanes>,
    places: Arc<Semaphore>,
    answers: Answers,
}

impl Fixture {
    fn new() -> Self {
        Self {
            lanes: Arc::new(Lanes::default()),
            places: Arc::new(Semaphore::new(10)),
            answers: Answers::default(),
        }
    }

    fn take(&self, message: &Message) -> Taken {
        let place = Place {
            _message: Arc::clone(&self.places).try_acquire_owned().unwrap(),
            _kib: Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap(),
        };
        let delivery = Delivery::new(message.clone(), 1, Counted(self.answers.clone()));
        self.lanes.take(delivery, place)
    }

    fn first(&self, message: &Message) -> (Job, OpenLane) {
        match self.take(message) {
            Taken::First(job, lane) => (job, lane),
            _ => unreachable!("the lane was not free"),
        }
    }
}

#[test]
fn one_key_waits_and_another_does_not() {
    let fixture = Fixture::new();
    let (a1, a2, b1) = (message("a"), message("a"), message("b"));
    let (job, mut lane) = fixture.first(&a1);
    assert!(matches!(fixture.take(&a2), Taken::Waiting));
    let _other_key = fixture.first(&b1);
    assert_eq!(fixture.places.available_permits(), 7);

    drop(job);
    let (_, next) = lane.advance();
    assert_eq!(next.unwrap().message, a2);
    assert_eq!(fixture.places.available_permits(), 9);

    let (_, none) = lane.advance();
    assert!(none.is_none());
    // The ended lane's guard must not close the one that opened after it.
    let (_, mut reopened) = fixture.first(&a1);
    drop(lane);
    assert!(matches!(fixture.take(&a2), Taken::Waiting));
    assert!(reopened.advance().1.is_some());
}

#[test]
fn another_delivery_of_a_message_joins_the_one_that_is_here() {
    let fixture = Fixture::new();
    let (current, waiting) = (message("a"), message("a"));
    let (job, mut lane) = fixture.first(&current);
    assert!(matches!(fixture.take(&waiting), Taken::Waiting));
    assert!(matches!(fixture.take(&current), Taken::Joined(_)));
    assert!(matches!(fixture.take(&waiting), Taken::Joined(_)));
    assert_eq!(
        fixture.places.available_permits(),
        6,
        "each keeps its place"
    );

    let answers = job.answers;
    assert_eq!(answers.len(), 1);
    let (joined, next) = lane.advance();
    assert_eq!(joined.len(), 1);
    drop((answers, joined));
    assert_eq!(fixture.places.available_permits(), 8);
    assert_eq!(next.unwrap().answers.len(), 2);
}

#[test]
fn a_lane_that_is_dropped_gives_back_all_that_waits() {
    let fixture = Fixture::new();
    let current = message("a");
    let (job, lane) = fixture.first(&current);
    fixture.take(&current);
    fixture.take(&message("a"));
    drop((job, lane));
    assert_eq!(fixture.answers.acked.load(Ordering::SeqCst), 0);
    assert_eq!(fixture.answers.dropped.load(Ordering::SeqCst), 3);
    assert_eq!(fixture.places.available_permits(), 10);
}
