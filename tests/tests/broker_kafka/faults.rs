//! Errors that librdkafka's mock cluster answers with.

use std::time::Duration;

use outbox_runtime::Message;
use outbox_runtime::broker::{
    BrokerOptions, KafkaBroker, PublishError, Publisher, Subscriber, Subscription, Topics,
};
use outbox_tests::brokers::suite::event;
use rdkafka::message::{Message as _, OwnedMessage};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use super::plain;

type Mock = MockCluster<'static, DefaultProducerContext>;

const TOPIC: &str = "mock.events";

/// A cluster with one broker and the topic, and our adapter.
fn mock() -> (Mock, String, KafkaBroker) {
    let mock = MockCluster::new(1).unwrap();
    mock.create_topic(TOPIC, 4, 1).unwrap();
    let url = format!("kafka://{}", mock.bootstrap_servers());
    let options = BrokerOptions::new()
        .topics(Topics::new("mock").unwrap())
        .confirm_within(Duration::from_secs(2))
        // It can't make topics by its protocol.
        .declare(false);
    let broker = KafkaBroker::new(&url, options).unwrap();
    (mock, url, broker)
}

fn produce_errors(mock: &Mock, errors: &[RDKafkaRespErr]) {
    mock.request_errors(RDKafkaApiKey::Produce, errors);
}

fn sequences(records: &[OwnedMessage], key: &str) -> Vec<i64> {
    let of_key = records
        .iter()
        .filter(|record| record.key() == Some(key.as_bytes()));
    let mut sequences = Vec::new();
    for record in of_key {
        let json: serde_json::Value = serde_json::from_slice(record.payload().unwrap()).unwrap();
        let sequence = json["sequence"].as_i64().unwrap();
        // What was confirmed to nobody is published twice.
        if !sequences.contains(&sequence) {
            sequences.push(sequence);
        }
    }
    sequences
}

/// Offers all until all are taken, as a relay does. How many offers failed.
async fn publish_all(broker: &KafkaBroker, mut messages: Vec<Message>) -> usize {
    let (mut failed, mut last) = (0, String::new());
    while !messages.is_empty() {
        let mut results = broker.publish(&messages).await.into_iter();
        messages.retain(|_| match results.next().unwrap() {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                failed += usize::from(!error.is_withheld());
                last = error.to_string();
                true
            }
        });
        assert!(failed < 1000, "{last}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    failed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_events_of_one_aggregate_are_in_order_in_spite_of_errors() {
    let (mock, url, broker) = mock();
    let errors = [
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
    ];
    let mut failed = 0;
    for part in 0..10 {
        let messages = (1..=100).map(|n| event("Happened", "1", part * 100 + n));
        let others = (1..=10).map(|n| event("Happened", "2", part * 10 + n));
        if part % 2 == 1 {
            produce_errors(&mock, &errors);
        }
        failed += publish_all(&broker, messages.chain(others).collect()).await;
    }
    assert!(failed > 0, "librdkafka tries some again by itself, not all");
    // Each once more where it was confirmed to nobody, so at least these.
    let records = plain::read(&url, TOPIC, 1100).await;
    assert_eq!(sequences(&records, "1"), (1..=1000).collect::<Vec<_>>());
    assert_eq!(sequences(&records, "2"), (1..=100).collect::<Vec<_>>());
}

/// Those that shared its request were refused with it, and are sent again alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_for_size_is_for_one_message_alone() {
    let (mock, url, broker) = mock();
    publish_all(&broker, vec![event("Happened", "warm", 1)]).await;
    // The first answer may be to several; then each is asked for alone, and one refused.
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
    produce_errors(&mock, &[refused, refused]);
    let messages: Vec<_> = (0..40)
        .map(|key| event("Happened", &key.to_string(), 1))
        .collect();
    let results = broker.publish(&messages).await;
    let permanent: Vec<_> = results
        .iter()
        .filter_map(|result| match result {
            Err(PublishError::Permanent(error)) => Some(error.to_string()),
            _ => None,
        })
        .collect();
    // Which of both answers is to which request is librdkafka's choice.
    assert!(permanent.len() <= 1, "{permanent:?}");
    for text in &permanent {
        assert!(text.contains("message.max.bytes"), "{text}");
        assert!(!text.contains("sequence"), "{text}");
    }
    let taken = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(taken, 40 - permanent.len());
    plain::read(&url, TOPIC, taken + 1).await;

    // One that is alone and refused twice.
    produce_errors(&mock, &[refused, refused]);
    let results = broker.publish(&[event("Happened", "x", 1)]).await;
    assert!(!results[0].as_ref().unwrap_err().is_transient());
    assert!(broker.publish(&[event("Happened", "y", 1)]).await[0].is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_gone_and_back_loses_nothing() {
    let (mock, url, broker) = mock();
    let subscription = Subscription::new("group", ["Happened"]);
    let mut deliveries = broker.subscribe(subscription).await.unwrap();
    publish_all(&broker, vec![event("Happened", "1", 1)]).await;
    mock.broker_down(1).unwrap();
    let refused = broker.publish(&[event("Happened", "1", 2)]).await;
    let error = refused[0].as_ref().unwrap_err();
    assert!(error.is_transient(), "{error}");
    mock.broker_up(1).unwrap();
    let messages = (2..=50).map(|n| event("Happened", "1", n)).collect();
    publish_all(&broker, messages).await;
    let records = plain::read(&url, TOPIC, 50).await;
    assert_eq!(sequences(&records, "1"), (1..=50).collect::<Vec<_>>());
    let mut arrived = Vec::new();
    while arrived.len() < 50 {
        let next = tokio::time::timeout(plain::PATIENCE, deliveries.next()).await;
        let delivery = next.unwrap().unwrap().unwrap();
        let sequence = delivery
            .message
            .metadata
            .aggregate
            .clone()
            .unwrap()
            .sequence;
        if !arrived.contains(&sequence) {
            arrived.push(sequence);
        }
        let _ = delivery.ack().await;
    }
    assert_eq!(arrived, (1..=50).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_read_ends_the_subscription_with_the_reason() {
    let (mock, _, broker) = mock();
    let forbidden = RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
    let errors = [forbidden; 5];
    mock.request_errors(RDKafkaApiKey::FindCoordinator, &errors);
    mock.request_errors(RDKafkaApiKey::JoinGroup, &errors);
    let subscription = Subscription::new("group", ["Happened"]);
    let mut deliveries = broker.subscribe(subscription).await.unwrap();
    let next = tokio::time::timeout(plain::PATIENCE, deliveries.next()).await;
    let error = next.unwrap().unwrap_err().to_string();
    assert!(error.contains("uthorization"), "{error}");
    assert!(deliveries.next().await.unwrap().is_none());
}

/// It knows no way to sign in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_holds_user_or_password() {
    let (_mock, url, _) = mock();
    let url = url.replace("kafka://", "kafka://someone:hunter2@");
    let options = BrokerOptions::new().confirm_within(Duration::from_secs(1));
    let broker = KafkaBroker::new(&url, options).unwrap();
    let results = broker.publish(&[event("Happened", "1", 1)]).await;
    let refused = results[0].as_ref().unwrap_err();
    assert!(refused.is_transient(), "{refused}");
    let subscribing = broker.subscribe(Subscription::new("group", ["Happened"]));
    let Err(error) = subscribing.await else {
        panic!("nobody is let in");
    };
    for text in [
        format!("{broker:?}"),
        format!("{refused} {refused:?}"),
        format!("{error} {error:?}"),
    ] {
        assert!(!text.contains("hunter2"), "{text}");
        assert!(!text.contains("someone"), "{text}");
    }
}
