//! One reader a stream, and what it does about entries that are gone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_runtime::broker::{RedisBroker, Subscriber, Subscription};
use outbox_tests::brokers::Redis;
use outbox_tests::brokers::suite::{Ground, event, wait_until};

use crate::support::{
    broker, consumers, end, next, one_stream, pending, published, sequence, stream, subscribed,
    told,
};

/// Who takes over has all that is not acknowledged, in order, and the former one gets nothing more.
#[tokio::test]
async fn a_reader_that_takes_over_fences_off_the_former_one() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let (one, other) = (broker(&ground), broker(&ground));
    let messages: Vec<_> = (1..=3).map(|n| event("Happened", "1", n)).collect();
    published(&one, &messages).await;
    let mut former = subscribed(&one).await;
    let held = next(&mut former).await;
    assert_eq!((sequence(&held), held.attempt), (1, 1));

    let mut latter = subscribed(&other).await;
    published(&one, &[event("Happened", "1", 4)]).await;
    let mut taken = Vec::new();
    for n in 1..=4 {
        let delivery = next(&mut latter).await;
        assert_eq!(sequence(&delivery), n);
        assert_eq!(delivery.is_redelivered(), n < 4, "{n}");
        taken.push(delivery);
    }
    let error = end(&mut former).await;
    assert!(error.contains("another reader took over"), "{error}");
    assert_eq!(consumers(&ground).await.len(), 1);

    // What the former one finishes is finished.
    held.ack().await.unwrap();
    assert_eq!(pending(&ground).await, 3);
    for delivery in taken {
        delivery.ack().await.unwrap();
    }
    assert_eq!(pending(&ground).await, 0);
}

/// Also what a client that is not ours took under the group's name.
#[tokio::test]
async fn a_new_reader_takes_what_any_other_consumer_has() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    drop(subscribed(&broker).await);
    let messages: Vec<_> = (1..=3).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let stream = stream(&ground);
    let words = [
        "XREADGROUP",
        "GROUP",
        "group",
        "stranger",
        "COUNT",
        "2",
        "STREAMS",
        &stream,
        ">",
    ];
    let _: redis::Value = told(&ground.url, &words).await;
    assert_eq!(pending(&ground).await, 2);
    let mut deliveries = subscribed(&broker).await;
    for n in 1..=3 {
        let delivery = next(&mut deliveries).await;
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }
    let consumers = consumers(&ground).await;
    assert!(
        consumers.len() == 1 && consumers[0].starts_with("outbox-"),
        "{consumers:?}"
    );
}

/// How often a message was handed over is counted by the server.
#[tokio::test]
async fn attempts_are_counted() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    published(&broker, &[event("Happened", "1", 1)]).await;
    for attempt in 1..=4 {
        let mut deliveries = subscribed(&broker).await;
        let delivery = next(&mut deliveries).await;
        assert_eq!(delivery.attempt, attempt);
        delivery.nack().await.unwrap();
        let error = end(&mut deliveries).await;
        assert!(error.contains("given back"), "{error}");
    }
}

/// One that was removed by hand or by retention while it was not acknowledged. It is told of.
#[tokio::test]
async fn an_entry_that_was_removed_is_passed_over() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let broker = broker(&ground);
    let stream = stream(&ground);
    let messages: Vec<_> = (1..=150).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let mut deliveries = subscribed(&broker).await;
    let held: Vec<_> = [next(&mut deliveries).await, next(&mut deliveries).await].into();
    // 1 and 70 are removed while they are not acknowledged, 149 before it is read.
    let entries: Vec<(String, Vec<String>)> =
        told(&ground.url, &["XRANGE", &stream, "-", "+"]).await;
    wait_until("the first are read ahead", async || {
        pending(&ground).await >= 70
    })
    .await;
    for n in [0, 69, 148] {
        let _: u64 = told(&ground.url, &["XDEL", &stream, &entries[n].0]).await;
    }
    drop(held);
    drop(deliveries);
    let mut deliveries = subscribed(&broker).await;
    for n in (1..=150).filter(|n| ![1, 70, 149].contains(n)) {
        let delivery = next(&mut deliveries).await;
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }
    assert_eq!(pending(&ground).await, 0);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for n in [0, 69] {
        let id = &entries[n].0;
        let told = log
            .lines()
            .filter(|line| line.contains("lost") && line.contains(id));
        assert_eq!(told.count(), 1, "{id}: {log}");
    }
}

/// What was logged in a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Exactly as many as were asked for are out at a time.
#[tokio::test]
async fn no_more_is_read_ahead_than_prefetch_allows() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = RedisBroker::new(&ground.url, one_stream(&ground).prefetch(7)).unwrap();
    let messages: Vec<_> = (1..=30).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let mut deliveries = subscribed(&broker).await;
    let mut held = Vec::new();
    for n in 1..=30 {
        if held.len() == 7 {
            let waiting = tokio::time::timeout(Duration::from_millis(100), deliveries.next());
            assert!(waiting.await.is_err(), "more than prefetch allows");
            assert_eq!(pending(&ground).await, 7);
            let oldest: outbox_runtime::broker::Delivery = held.remove(0);
            oldest.ack().await.unwrap();
        }
        let delivery = next(&mut deliveries).await;
        assert_eq!(sequence(&delivery), n);
        held.push(delivery);
    }
}

/// Also while the server keeps it waiting for news.
#[tokio::test]
async fn a_subscription_that_is_dropped_closes_its_connection() {
    let Some(ground) = Ground::<Redis>::private() else {
        return;
    };
    let broker = broker(&ground);
    let blocked = async || {
        let info: String = told(&ground.url, &["INFO", "clients"]).await;
        info.contains("blocked_clients:1")
    };
    let deliveries = subscribed(&broker).await;
    wait_until("it waits for news", blocked).await;
    drop(deliveries);
    wait_until("it waits no more", async || !blocked().await).await;
}

/// What nobody wants is acknowledged, or it would be read again for ever.
#[tokio::test]
async fn unwanted_types_are_acknowledged() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    let messages: Vec<_> = (1..=200).map(|n| event("Ignored", "1", n)).collect();
    published(&broker, &messages).await;
    published(&broker, &[event("Happened", "1", 201)]).await;
    let mut deliveries = subscribed(&broker).await;
    let delivery = next(&mut deliveries).await;
    assert_eq!(sequence(&delivery), 201);
    assert_eq!(pending(&ground).await, 1);
    delivery.ack().await.unwrap();
}

/// Without a partition, one subscription reads all.
#[tokio::test]
async fn one_subscription_can_read_all_partitions() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = RedisBroker::new(&ground.url, ground.options()).unwrap();
    let everything = Subscription::new("group", ["Happened"]);
    let mut deliveries = broker.subscribe(everything).await.unwrap();
    let messages: Vec<_> = (0..40)
        .map(|n| event("Happened", &n.to_string(), 1))
        .collect();
    published(&broker, &messages).await;
    for _ in &messages {
        next(&mut deliveries).await.ack().await.unwrap();
    }
    let streams: Vec<String> = told(
        &ground.url,
        &["KEYS", &format!("{{{}.*", ground.topics.namespace())],
    )
    .await;
    assert_eq!(streams.len(), 4, "{streams:?}");
}
