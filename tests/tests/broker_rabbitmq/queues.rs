//! Exchanges, queues and bindings.

use lapin::ExchangeKind;
use lapin::options::{ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use outbox_runtime::broker::{
    ForeignTopic, Publisher, QueueType, RabbitMqBroker, Subscriber, Subscription,
};
use outbox_tests::brokers::RabbitMq;
use outbox_tests::brokers::suite::{Ground, event, wait_until};

use super::{channel, exchange, publish, rabbit, read_all, sequence};

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

/// Nothing tells readers of it: their queues are still there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_that_was_deleted_is_bound_again() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    let mut reader = read_all(&broker, &["Happened"]).await;
    publish(&broker, &[event("Happened", "1", 1)]).await;
    let (_connection, channel) = channel(&ground).await;
    let deleted =
        channel.exchange_delete(exchange(&ground).into(), ExchangeDeleteOptions::default());
    deleted.await.unwrap();
    wait_until("the message is taken", async || {
        match &broker.publish(&[event("Happened", "1", 2)]).await[0] {
            Ok(()) => true,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                false
            }
        }
    })
    .await;
    for n in 1..=2 {
        let delivery = reader.next().await.unwrap().unwrap();
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }
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

/// It is not ours to make, and its partition's reader alone waits for it.
#[tokio::test]
async fn a_foreign_exchange_that_is_missing_is_reported_by_its_reader_alone() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let foreign = format!("billing.of.{}", ground.topics.namespace());
    let options = ground
        .options()
        .foreign(ForeignTopic::cloud_events(&foreign));
    let broker = RabbitMqBroker::new(&ground.url, options).unwrap();
    let subscription = Subscription::new("group", ["Happened"]);
    let mut refused = Vec::new();
    for partition in 0..4 {
        if let Err(error) = broker.subscribe(subscription.of_partition(partition)).await {
            assert!(error.to_string().contains(&foreign), "{error}");
            refused.push(partition);
        }
    }
    assert_eq!(refused.len(), 1, "{refused:?}");
    let (_connection, channel) = channel(&ground).await;
    let declared = channel.exchange_declare(
        foreign.into(),
        ExchangeKind::Topic,
        ExchangeDeclareOptions::default(),
        FieldTable::default(),
    );
    declared.await.unwrap();
    let subscribed = broker
        .subscribe(subscription.of_partition(refused[0]))
        .await;
    assert!(subscribed.is_ok());
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
