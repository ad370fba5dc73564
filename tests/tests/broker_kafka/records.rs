//! Keys, partitions, topics and transactions.

use std::num::NonZeroU16;

use outbox_runtime::broker::{ForeignTopic, KafkaBroker, Publisher, Subscriber, Subscription};
use outbox_tests::brokers::suite::{Ground, Member, event};
use outbox_tests::brokers::{Kafka, PlainMessage, TestBroker};
use rdkafka::message::Message as _;
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};

use super::plain;

/// What Kafka's own tests expect of Java's murmur2.
const MURMUR2: [(&str, i32); 6] = [
    ("21", -973_932_308),
    ("foobar", -790_332_482),
    ("a-little-bit-long-string", -985_981_536),
    ("a-little-bit-longer-string", -1_486_304_829),
    (
        "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
        -58_897_971,
    ),
    ("abc", 479_470_107),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_in_the_partition_where_java_puts_it() {
    let Some(ground) = Ground::<Kafka>::shared() else {
        return;
    };
    let partitions = 7;
    let broker = ground.broker_with(
        ground
            .options()
            .partitions(NonZeroU16::new(partitions).unwrap()),
    );
    let messages = MURMUR2.map(|(key, _)| event("Happened", key, 1));
    for result in broker.publish(&messages).await {
        result.unwrap();
    }
    let topic = plain::events(&ground.topics);
    let records = plain::read(&ground.url, &topic, MURMUR2.len()).await;
    for (key, hash) in MURMUR2 {
        let record = records
            .iter()
            .find(|record| record.key() == Some(key.as_bytes()))
            .unwrap();
        let expected = (hash & 0x7fff_ffff) % i32::from(partitions);
        assert_eq!(record.partition(), expected, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_without_an_aggregate_has_no_key() {
    let Some(ground) = Ground::<Kafka>::shared() else {
        return;
    };
    let mut message = event("Happened", "", 1);
    message.metadata.aggregate = None;
    let empty = event("Happened", "", 1);
    for result in ground.broker().publish(&[message, empty]).await {
        result.unwrap();
    }
    let topic = plain::events(&ground.topics);
    let records = plain::read(&ground.url, &topic, 2).await;
    let mut keys: Vec<_> = records.iter().map(|record| record.key()).collect();
    keys.sort();
    assert_eq!(keys, [None, Some(&b""[..])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_transaction_took_back_is_not_delivered() {
    let Some(ground) = Ground::<Kafka>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let mut config = plain::config(&ground.url);
    config.set("transactional.id", ground.topics.namespace());
    let topic = plain::events(&ground.topics);
    let wanted = tokio::task::spawn_blocking(move || {
        let producer: FutureProducer = config.create().unwrap();
        producer.init_transactions(plain::PATIENCE).unwrap();
        for is_kept in [false, true, false] {
            producer.begin_transaction().unwrap();
            let body = format!("kept: {is_kept}");
            let record = FutureRecord::to(&topic).key("1").payload(&body);
            drop(producer.send_result(record).map_err(|(error, _)| error));
            match is_kept {
                true => producer.commit_transaction(plain::PATIENCE).unwrap(),
                false => producer.abort_transaction(plain::PATIENCE).unwrap(),
            }
        }
    });
    wanted.await.unwrap();
    let message = event("Happened", "1", 1);
    for result in broker.publish(std::slice::from_ref(&message)).await {
        result.unwrap();
    }
    assert_eq!(member.take().await.payload, "kept: true");
    assert_eq!(member.take().await, message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_topic_that_comes_later_is_read_from_its_beginning() {
    let Some(ground) = Ground::<Kafka>::shared() else {
        return;
    };
    let topic = format!("{}-theirs", ground.topics.namespace());
    let options = ground.options().foreign(ForeignTopic::cloud_events(&topic));
    let broker = KafkaBroker::new(&ground.url, options)
        .unwrap()
        .set("topic.metadata.refresh.interval.ms", "200")
        .unwrap();
    let mut deliveries = broker
        .subscribe(Subscription::new("group", ["Happened"]))
        .await
        .unwrap();
    let ours = event("Happened", "1", 1);
    for result in broker.publish(std::slice::from_ref(&ours)).await {
        result.unwrap();
    }
    let delivery = deliveries.next().await.unwrap().unwrap();
    assert_eq!(delivery.message, ours);
    delivery.ack().await.unwrap();
    Kafka::make_foreign(&ground.url, &topic).await;
    let theirs = PlainMessage {
        content_type: Some("application/cloudevents+json".to_owned()),
        body: br#"{"specversion":"1.0","id":"1","source":"/them","type":"Happened"}"#.to_vec(),
        ..PlainMessage::default()
    };
    Kafka::send_foreign(&ground.url, &topic, theirs).await;
    let next = tokio::time::timeout(plain::PATIENCE, deliveries.next()).await;
    let delivery = next.unwrap().unwrap().unwrap();
    assert_eq!(delivery.message.metadata.producer, "/them");
    delivery.ack().await.unwrap();
}
