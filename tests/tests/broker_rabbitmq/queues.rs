//! Exchanges, queues and bindings.

use std::ops::Range;
use std::time::Duration;

use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, ExchangeDeleteOptions,
    QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Confirmation, ExchangeKind};
use outbox_runtime::Message;
use outbox_runtime::broker::{
    ForeignEvent, ForeignTopic, Publisher, QueueType, RabbitMqBroker, Subscriber, Subscription,
};
use outbox_tests::brokers::suite::{Ground, event, wait_until};
use outbox_tests::brokers::{RabbitMq, TestBroker};

use super::{Reading, channel, exchange, publish, rabbit, read_all, sequence};

/// Otherwise what belongs to partitions that nobody has leased yet would go nowhere.
#[tokio::test]
async fn whoever_reads_one_partition_makes_the_queues_of_all() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    let subscription = Subscription::new("group", ["Happened"]);
    let one = broker
        .subscribe(subscription.of_partition(2))
        .await
        .unwrap();
    let messages: Vec<_> = (0..40)
        .map(|n| event("Happened", &n.to_string(), 1))
        .collect();
    publish(&broker, &messages).await;
    drop(one);
    let mut reader = broker.subscribe(subscription).await.unwrap();
    for _ in 0..40 {
        reader.next().await.unwrap().unwrap().ack().await.unwrap();
    }
}

#[tokio::test]
async fn a_queue_of_another_type_is_reported_with_what_to_do() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    drop(read_all(&broker, &["Happened"]).await);
    let other = broker.clone().queue_type(QueueType::Quorum);
    let Err(error) = other
        .subscribe(Subscription::new("group", ["Happened"]))
        .await
    else {
        panic!("it reads a queue of another type");
    };
    let error = error.to_string();
    assert!(
        error.contains("another form") && error.contains("group.0"),
        "{error}"
    );
    // It harms nobody.
    let mut reader = read_all(&broker, &["Happened"]).await;
    publish(&broker, &[event("Happened", "1", 1)]).await;
    assert_eq!(sequence(&reader.next().await.unwrap().unwrap()), 1);
}

/// Nothing tells readers of it: their queues are still there. The relay is a process of its own, and
/// it is a reader of half of the partitions that makes the exchange again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_that_was_deleted_is_bound_again() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let mut first = half(&ground, 0..2).await;
    // So that they don't look after their bindings at the same moment.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let mut second = half(&ground, 2..4).await;
    let relay = rabbit(&ground);
    publish(&relay, &one_of_each(1)).await;
    delete_and_wait_until_it_is_made_again(&ground).await;
    publish_as_a_relay(&relay, one_of_each(2)).await;
    first.append(&mut second);
    let mut arrived = take(&mut first, 2 * AGGREGATES).await;
    arrived.sort_unstable();
    assert_eq!(arrived, [[1; AGGREGATES], [2; AGGREGATES]].concat());
}

/// Partitions that nobody reads at the moment would stay unbound otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_misses_the_exchange_binds_the_queues_of_all_partitions() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let readers = half(&ground, 0..2).await;
    delete_and_wait_until_it_is_made_again(&ground).await;
    publish_as_a_relay(&rabbit(&ground), one_of_each(1)).await;
    drop(readers);
    let mut all = [read_all(&rabbit(&ground), &["Happened"]).await];
    assert_eq!(take(&mut all, AGGREGATES).await, [1; AGGREGATES]);
}

const AGGREGATES: usize = 40;

/// A message of each of so many aggregates that all partitions have some.
fn one_of_each(sequence: i64) -> Vec<Message> {
    (0..AGGREGATES)
        .map(|n| event("Happened", &n.to_string(), sequence))
        .collect()
}

/// An instance that has leased these partitions of four.
async fn half(ground: &Ground<RabbitMq>, partitions: Range<u16>) -> Vec<Reading> {
    let broker = rabbit(ground);
    let subscription = Subscription::new("group", ["Happened"]);
    let mut readers = Vec::new();
    for partition in partitions {
        let subscription = subscription.of_partition(partition);
        readers.push(broker.subscribe(subscription).await.unwrap());
    }
    readers
}

async fn delete_and_wait_until_it_is_made_again(ground: &Ground<RabbitMq>) {
    let (connection, channel) = channel(ground).await;
    let deleted =
        channel.exchange_delete(exchange(ground).into(), ExchangeDeleteOptions::default());
    deleted.await.unwrap();
    wait_until("a reader makes the exchange", async || {
        let options = ExchangeDeclareOptions {
            passive: true,
            ..ExchangeDeclareOptions::default()
        };
        // The server closes the channel when there is none.
        let channel = connection.create_channel().await.unwrap();
        let found = channel.exchange_declare(
            exchange(ground).into(),
            ExchangeKind::Topic,
            options,
            FieldTable::default(),
        );
        found.await.is_ok()
    })
    .await;
}

/// Offers messages until each is taken. None is refused for good.
async fn publish_as_a_relay(relay: &RabbitMqBroker, mut messages: Vec<Message>) {
    wait_until("all are taken", async || {
        let mut results = relay.publish(&messages).await.into_iter();
        messages.retain(|_| match results.next().unwrap() {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                true
            }
        });
        messages.is_empty()
    })
    .await;
}

/// The sequences of so many messages, acknowledged.
async fn take(readers: &mut [Reading], count: usize) -> Vec<i64> {
    let mut arrived = Vec::new();
    wait_until("they arrive", async || {
        for reader in readers.iter_mut() {
            let patience = Duration::from_millis(100);
            while let Ok(delivery) = tokio::time::timeout(patience, reader.next()).await {
                let delivery = delivery.unwrap().unwrap();
                arrived.push(sequence(&delivery));
                delivery.ack().await.unwrap();
            }
        }
        arrived.len() >= count
    })
    .await;
    arrived
}

#[tokio::test]
async fn a_queue_that_was_deleted_is_told_and_made_again() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    let mut reader = read_all(&broker, &["Happened"]).await;
    let (_connection, channel) = channel(&ground).await;
    let queue = format!("{}.group.1", exchange(&ground));
    let deleted = channel.queue_delete(queue.clone().into(), QueueDeleteOptions::default());
    deleted.await.unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(error.to_string().contains(&queue), "{error}");
    drop(reader);
    let mut reader = read_all(&broker, &["Happened"]).await;
    let messages: Vec<_> = (0..40)
        .map(|n| event("Happened", &n.to_string(), 1))
        .collect();
    publish(&broker, &messages).await;
    for _ in 0..40 {
        reader.next().await.unwrap().unwrap().ack().await.unwrap();
    }
}

/// It is not ours to make. It is read as soon as it is there, over the same subscription, and what is
/// our own flows and is seen to meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_exchange_that_is_missing_holds_up_nothing_and_is_read_once_it_is_there() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let foreign = format!("billing.of.{}", ground.topics.namespace());
    let options = ground
        .options()
        .foreign(ForeignTopic::mapped(&foreign, |raw| {
            let payload = String::from_utf8(raw.body.clone())?;
            let billed = ForeignEvent::new("Happened", payload).id(&raw.position);
            Ok(Some(billed.aggregate("Invoice", "1")))
        }));
    let broker = RabbitMqBroker::new(&ground.url, options).unwrap();
    let subscription = Subscription::new("group", ["Happened"]);
    let mut readers = Vec::new();
    for partition in 0..4 {
        let subscription = subscription.of_partition(partition);
        readers.push(broker.subscribe(subscription).await.unwrap());
    }
    publish(&broker, &one_of_each(1)).await;
    assert_eq!(take(&mut readers, AGGREGATES).await, [1; AGGREGATES]);
    delete_and_wait_until_it_is_made_again(&ground).await;
    publish_as_a_relay(&broker, one_of_each(2)).await;
    assert_eq!(take(&mut readers, AGGREGATES).await, [2; AGGREGATES]);

    RabbitMq::make_foreign(&ground.url, &foreign).await;
    let queue = format!("{}:{foreign}:group", ground.topics.namespace());
    let (connection, _channel) = channel(&ground).await;
    wait_until("it is bound", async || {
        let channel = connection.create_channel().await.unwrap();
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let properties = BasicProperties::default().with_message_id("invoice-1".into());
        let key = "any".into();
        let sent = channel.basic_publish(foreign.as_str().into(), key, options, b"{}", properties);
        matches!(sent.await.unwrap().await.unwrap(), Confirmation::Ack(None))
    })
    .await;
    // A foreign event has no sequence.
    assert_eq!(take(&mut readers, 1).await, [0]);
    // By one reader, and once.
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let channel = connection.create_channel().await.unwrap();
    let state = channel.queue_declare(queue.into(), options, FieldTable::default());
    assert_eq!(state.await.unwrap().consumer_count(), 1);
    // And what is our own flows on.
    publish(&broker, &one_of_each(3)).await;
    assert_eq!(take(&mut readers, AGGREGATES).await, [3; AGGREGATES]);
}

/// The same where nothing may be declared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_queue_that_others_have_to_make_holds_up_nothing() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    drop(read_all(&rabbit(&ground), &["Happened"]).await);
    let foreign = format!("billing.of.{}", ground.topics.namespace());
    let options = ground
        .options()
        .declare(false)
        .foreign(ForeignTopic::cloud_events(&foreign));
    let broker = RabbitMqBroker::new(&ground.url, options).unwrap();
    let mut readers = [read_all(&broker, &["Happened"]).await];
    publish(&broker, &one_of_each(1)).await;
    assert_eq!(take(&mut readers, AGGREGATES).await, [1; AGGREGATES]);
}

#[tokio::test]
async fn any_name_of_a_group_has_queues_of_its_own() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    let mut readers = Vec::new();
    for group in ["a.b", "a b", "ä%", "", &"g".repeat(1_000)] {
        let subscription = Subscription::new(group, ["Happened"]);
        readers.push(broker.subscribe(subscription).await.unwrap());
    }
    let message = event("Happened", "1", 1);
    publish(&broker, std::slice::from_ref(&message)).await;
    for mut reader in readers {
        let delivery = reader.next().await.unwrap().unwrap();
        assert_eq!(delivery.message, message);
        delivery.ack().await.unwrap();
    }
}
