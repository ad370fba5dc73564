#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use time::OffsetDateTime;
use uuid::Uuid;

use super::*;
use crate::broker::Delivery;
use crate::domain::{AggregateRef, MessageId, Metadata};

fn message(event_type: &str, aggregate_id: &str, sequence: i64) -> Message {
    let metadata = Metadata {
        message_id: MessageId::from_uuid(Uuid::now_v7()),
        event_type: event_type.to_owned(),
        schema_version: 1,
        aggregate: Some(AggregateRef {
            aggregate_type: "Order".to_owned(),
            aggregate_id: aggregate_id.to_owned(),
            sequence,
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

async fn join(broker: &InProcessBroker, group: &str, event_type: &str) -> Box<dyn Deliveries> {
    broker
        .subscribe(Subscription::new(group, [event_type]))
        .await
        .unwrap()
}

async fn next(deliveries: &mut Box<dyn Deliveries>) -> Delivery {
    deliveries.next().await.unwrap().unwrap()
}

fn spawn_publish(
    broker: &InProcessBroker,
    messages: Vec<Message>,
) -> tokio::task::JoinHandle<Vec<Result<(), PublishError>>> {
    let broker = broker.clone();
    tokio::spawn(async move { broker.publish(&messages).await })
}

#[tokio::test]
async fn confirms_at_once_what_nobody_asked_for() {
    let broker = InProcessBroker::new();
    let _inbox = join(&broker, "a", "Paid").await;
    let results = broker.publish(&[message("Placed", "1", 1)]).await;
    assert!(results.iter().all(Result::is_ok));
}

#[tokio::test]
async fn confirms_after_every_group_has_acknowledged() {
    let broker = InProcessBroker::new();
    let mut a = join(&broker, "a", "Paid").await;
    let mut b = join(&broker, "b", "Paid").await;
    let publishing = spawn_publish(&broker, vec![message("Paid", "1", 1)]);
    next(&mut a).await.ack().await.unwrap();
    let of_b = next(&mut b).await;
    assert!(!publishing.is_finished());
    of_b.ack().await.unwrap();
    assert!(publishing.await.unwrap().iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_dropped_or_returned_delivery_is_a_transient_failure_and_withholds_its_key() {
    for answer in ["nack", "drop"] {
        let broker = InProcessBroker::new();
        let mut a = join(&broker, "a", "Paid").await;
        let batch = vec![
            message("Paid", "1", 1),
            message("Paid", "2", 1),
            message("Paid", "1", 2),
        ];
        let publishing = spawn_publish(&broker, batch);
        for _ in 0..2 {
            let delivery = next(&mut a).await;
            let aggregate = delivery.message.metadata.aggregate.clone().unwrap();
            if aggregate.aggregate_id == "2" {
                delivery.ack().await.unwrap();
            } else if answer == "nack" {
                delivery.nack().await.unwrap();
            } else {
                drop(delivery);
            }
        }
        let results = publishing.await.unwrap();
        assert!(matches!(
            results.first(),
            Some(Err(PublishError::Transient(_)))
        ));
        assert!(matches!(results.get(1), Some(Ok(()))));
        assert!(matches!(results.get(2), Some(Err(PublishError::Withheld))));
    }
}

#[tokio::test]
async fn one_key_is_delivered_in_order_one_at_a_time() {
    let broker = InProcessBroker::new();
    let mut a = join(&broker, "a", "Paid").await;
    let batch = (1..=20).map(|n| message("Paid", "1", n)).collect();
    let publishing = spawn_publish(&broker, batch);
    for expected in 1..=20 {
        let delivery = next(&mut a).await;
        let aggregate = delivery.message.metadata.aggregate.clone().unwrap();
        assert_eq!(aggregate.sequence, expected);
        delivery.ack().await.unwrap();
    }
    assert!(publishing.await.unwrap().iter().all(Result::is_ok));
}

#[tokio::test]
async fn members_of_one_group_share_its_messages() {
    let broker = InProcessBroker::new();
    let mut first = join(&broker, "a", "Paid").await;
    let mut second = join(&broker, "a", "Paid").await;
    let batch = (0..64)
        .map(|n| message("Paid", &n.to_string(), 1))
        .collect();
    let publishing = spawn_publish(&broker, batch);
    let (mut of_first, mut of_second) = (0, 0);
    for _ in 0..64 {
        let delivery = tokio::select! {
            delivery = next(&mut first) => { of_first += 1; delivery }
            delivery = next(&mut second) => { of_second += 1; delivery }
        };
        delivery.ack().await.unwrap();
    }
    assert!(publishing.await.unwrap().iter().all(Result::is_ok));
    assert!(of_first > 0 && of_second > 0, "{of_first} and {of_second}");
}

#[tokio::test]
async fn a_group_whose_members_left_is_waited_for_until_it_is_forgotten() {
    let broker = InProcessBroker::new();
    drop(join(&broker, "a", "Paid").await);
    let refused = broker.publish(&[message("Paid", "1", 1)]).await;
    assert!(matches!(
        refused.first(),
        Some(Err(PublishError::Transient(_)))
    ));

    let mut back = join(&broker, "a", "Paid").await;
    let publishing = spawn_publish(&broker, vec![message("Paid", "1", 1)]);
    next(&mut back).await.ack().await.unwrap();
    assert!(publishing.await.unwrap().iter().all(Result::is_ok));

    drop(back);
    broker.forget_group("a");
    let confirmed = broker.publish(&[message("Paid", "1", 1)]).await;
    assert!(confirmed.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_member_that_leaves_gives_back_what_waited_for_it() {
    let broker = InProcessBroker::new();
    let mut a = join(&broker, "a", "Paid").await;
    let batch = vec![message("Paid", "1", 1), message("Paid", "2", 1)];
    let publishing = spawn_publish(&broker, batch);
    let taken = next(&mut a).await;
    drop(a);
    drop(taken);
    let results = publishing.await.unwrap();
    assert!(results.iter().all(Result::is_err));
}

#[tokio::test]
async fn a_full_queue_makes_the_publisher_wait() {
    let broker = InProcessBroker::new().capacity(1);
    let mut a = join(&broker, "a", "Paid").await;
    let batch = (0..10)
        .map(|n| message("Paid", &n.to_string(), 1))
        .collect();
    let publishing = spawn_publish(&broker, batch);
    for _ in 0..10 {
        next(&mut a).await.ack().await.unwrap();
    }
    assert!(publishing.await.unwrap().iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_publisher_that_gave_up_is_not_confirmed_late() {
    let broker = InProcessBroker::new();
    let mut a = join(&broker, "a", "Paid").await;
    let publishing = spawn_publish(&broker, vec![message("Paid", "1", 1)]);
    let taken = next(&mut a).await;
    publishing.abort();
    assert!(publishing.await.is_err());
    taken.ack().await.unwrap();

    // What was still in the queue when its publisher gave up is not delivered at all.
    let publishing = spawn_publish(&broker, vec![message("Paid", "1", 2)]);
    tokio::task::yield_now().await;
    publishing.abort();
    assert!(publishing.await.is_err());
    let publishing = spawn_publish(&broker, vec![message("Paid", "1", 3)]);
    let delivery = next(&mut a).await;
    let sequence = delivery
        .message
        .metadata
        .aggregate
        .clone()
        .unwrap()
        .sequence;
    assert_eq!(sequence, 3);
    delivery.ack().await.unwrap();
    assert!(publishing.await.unwrap().iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_group_that_takes_too_long_is_a_transient_failure() {
    let broker = InProcessBroker::new().confirm_within(Duration::from_secs(5));
    let mut a = join(&broker, "a", "Paid").await;
    let publishing = spawn_publish(&broker, vec![message("Paid", "1", 1)]);
    let held = next(&mut a).await;
    let results = publishing.await.unwrap();
    assert!(matches!(
        results.first(),
        Some(Err(PublishError::Transient(_)))
    ));
    held.ack().await.unwrap();
}
