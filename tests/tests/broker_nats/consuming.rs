//! Generations of consumers, and deadlines.

use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{self, stream};
use futures_util::{StreamExt, TryStreamExt};
use outbox_runtime::broker::{NatsBroker, Publisher, Subscriber, Subscription};
use outbox_tests::brokers::Nats;
use outbox_tests::brokers::suite::{Ground, event};

async fn stream(ground: &Ground<Nats>) -> stream::Stream {
    let client = async_nats::connect(&ground.url).await.unwrap();
    let name = format!("{}_events", ground.topics.namespace());
    jetstream::new(client).get_stream(name).await.unwrap()
}

async fn consumers(stream: &stream::Stream) -> Vec<String> {
    stream.consumer_names().try_collect().await.unwrap()
}

/// Events of one aggregate, and the subscription to its partition.
async fn published(ground: &Ground<Nats>, count: i64) -> Subscription {
    let broker = ground.broker();
    let messages: Vec<_> = (1..=count).map(|n| event("Happened", "1", n)).collect();
    for result in broker.publish(&messages).await {
        result.unwrap();
    }
    let first = stream(ground).await.get_raw_message(1).await.unwrap();
    let partition = first.subject.split('.').nth(2).unwrap().parse().unwrap();
    Subscription::new("group", ["Happened"]).of_partition(partition)
}

#[tokio::test]
async fn each_reader_goes_on_where_the_last_one_was_and_one_consumer_remains() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    let subscription = published(&ground, 5).await;
    let broker = ground.broker();
    for n in 1..=5 {
        let mut deliveries = broker.subscribe(subscription.clone()).await.unwrap();
        let delivery = deliveries.next().await.unwrap().unwrap();
        let aggregate = delivery.message.metadata.aggregate.clone().unwrap();
        assert_eq!(aggregate.sequence, n);
        delivery.ack().await.unwrap();
        let names = consumers(&stream(&ground).await).await;
        assert_eq!(names.len(), 1, "{names:?}");
        let partition = subscription.partition.unwrap();
        assert!(
            names[0].starts_with(&format!("group-{partition}-{n}-")),
            "{names:?}"
        );
    }
    // Nothing is left, also for one that comes after one that read nothing.
    for _ in 0..2 {
        let mut deliveries = broker.subscribe(subscription.clone()).await.unwrap();
        let next = tokio::time::timeout(Duration::from_millis(300), deliveries.next()).await;
        assert!(next.is_err(), "{next:?}");
    }
}

#[tokio::test]
async fn who_is_taken_over_from_is_told_and_its_acknowledgements_fail() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    let subscription = published(&ground, 2).await;
    let broker = ground.broker();
    let mut stale = broker.subscribe(subscription.clone()).await.unwrap();
    let first = stale.next().await.unwrap().unwrap();
    let mut fresh = broker.subscribe(subscription).await.unwrap();
    assert!(first.ack().await.is_err());
    let told = async {
        // What had arrived before may come.
        while stale.next().await.is_ok() {}
    };
    tokio::time::timeout(Duration::from_secs(30), told)
        .await
        .unwrap();
    for n in 1..=2 {
        let delivery = fresh.next().await.unwrap().unwrap();
        assert_eq!(
            delivery
                .message
                .metadata
                .aggregate
                .clone()
                .unwrap()
                .sequence,
            n
        );
        delivery.ack().await.unwrap();
    }
}

#[tokio::test]
async fn a_deadline_is_extended_while_a_handler_runs() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    let subscription = published(&ground, 1).await;
    let broker = NatsBroker::new(&ground.url, ground.options())
        .unwrap()
        .ack_wait(Duration::from_secs(1));
    let mut deliveries = broker.subscribe(subscription).await.unwrap();
    let delivery = deliveries.next().await.unwrap().unwrap();
    let again = tokio::time::timeout(Duration::from_secs(4), deliveries.next()).await;
    assert!(again.is_err(), "{again:?}");
    delivery.ack().await.unwrap();
    let stream = stream(&ground).await;
    let names = consumers(&stream).await;
    let info = stream.consumer_info(&names[0]).await.unwrap();
    assert_eq!((info.num_redelivered, info.num_ack_pending), (0, 0));
    assert_eq!(info.delivered.consumer_sequence, 1);
}

/// A connection that breaks may swallow what the server has sent.
#[tokio::test]
async fn what_was_lost_on_the_way_comes_again_before_what_follows() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    let subscription = published(&ground, 1).await;
    let broker = ground.broker();
    let mut deliveries = broker.subscribe(subscription.clone()).await.unwrap();
    deliveries
        .next()
        .await
        .unwrap()
        .unwrap()
        .ack()
        .await
        .unwrap();
    // Somebody else takes one away from our consumer.
    let stream = stream(&ground).await;
    let names = consumers(&stream).await;
    let thief: PullConsumer = stream.get_consumer(&names[0]).await.unwrap();
    let stealing = thief
        .fetch()
        .max_messages(1)
        .expires(Duration::from_secs(5));
    let mut stolen = stealing.messages().await.unwrap();
    // The server serves those who wait in turn: the first is ours, the second the thief's.
    let messages: Vec<_> = (2..=4).map(|n| event("Happened", "1", n)).collect();
    for result in broker.publish(&messages).await {
        result.unwrap();
    }
    let taken = stolen.next().await.unwrap().unwrap();
    let stolen = i64::try_from(taken.info().unwrap().stream_sequence).unwrap();
    let mut arrived = Vec::new();
    let error = loop {
        match deliveries.next().await {
            Ok(delivery) => {
                let delivery = delivery.unwrap();
                arrived.push(
                    delivery
                        .message
                        .metadata
                        .aggregate
                        .clone()
                        .unwrap()
                        .sequence,
                );
                delivery.ack().await.unwrap();
            }
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("lost on the way"), "{error}");
    assert_eq!(arrived, (2..stolen).collect::<Vec<_>>());
    let mut deliveries = broker.subscribe(subscription).await.unwrap();
    for n in stolen..=4 {
        let delivery = deliveries.next().await.unwrap().unwrap();
        assert_eq!(
            delivery
                .message
                .metadata
                .aggregate
                .clone()
                .unwrap()
                .sequence,
            n
        );
        delivery.ack().await.unwrap();
    }
}
