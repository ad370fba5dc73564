//! Single active consumers, on both types of queues.

use std::time::Duration;

use outbox_runtime::broker::{QueueType, RabbitMqBroker, Subscriber, Subscription};
use outbox_tests::brokers::RabbitMq;
use outbox_tests::brokers::suite::{Ground, event};

use super::{Reading, publish, rabbit, read_all, sequence};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_reader_waits_for_the_first_and_gets_what_that_one_left_on_classic_queues() {
    a_second_reader_waits_for_the_first_and_gets_what_that_one_left(QueueType::Classic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_reader_waits_for_the_first_and_gets_what_that_one_left_on_quorum_queues() {
    a_second_reader_waits_for_the_first_and_gets_what_that_one_left(QueueType::Quorum).await;
}

/// Readers follow one another, each after some messages, some of them acknowledged, while more are
/// published; what is not acknowledged comes first and in order.
async fn a_second_reader_waits_for_the_first_and_gets_what_that_one_left(queue_type: QueueType) {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let options = ground.options().prefetch(40);
    let broker = RabbitMqBroker::new(&ground.url, options)
        .unwrap()
        .queue_type(queue_type);
    let mut reader = read_all(&broker, &["Happened"]).await;
    let mut acknowledged = 0;
    let mut published = 0;
    for round in 0..20 {
        let more: Vec<_> = (1..=30)
            .map(|n| event("Happened", "1", published + n))
            .collect();
        publish(&broker, &more).await;
        published += 30;
        let mut next = read_all(&broker, &["Happened"]).await;
        let early = tokio::time::timeout(Duration::from_millis(20), next.next()).await;
        assert!(early.is_err(), "{early:?}");
        let mut held = Vec::new();
        for n in 1..=5 {
            let delivery = reader.next().await.unwrap().unwrap();
            assert_eq!(sequence(&delivery), acknowledged + n, "round {round}");
            held.push(delivery);
        }
        for delivery in held.drain(..(round % 6) as usize) {
            delivery.ack().await.unwrap();
            acknowledged += 1;
        }
        drop(reader);
        // Too late: the next reader has it.
        for delivery in held {
            delivery.ack().await.unwrap_err();
        }
        reader = next;
    }
    for n in acknowledged + 1..=published {
        let delivery = reader.next().await.unwrap().unwrap();
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }
}

#[tokio::test]
async fn attempts_are_counted_by_quorum_queues_and_told_by_classic_ones() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    for (queue_type, group, attempts) in [
        (QueueType::Classic, "classic", [1, 2, 2, 2]),
        (QueueType::Quorum, "quorum", [1, 2, 3, 4]),
    ] {
        let broker = rabbit(&ground).queue_type(queue_type);
        let subscription = Subscription::new(group, ["Happened"]);
        let mut reader = broker.subscribe(subscription.clone()).await.unwrap();
        publish(&broker, &[event("Happened", "1", 1)]).await;
        for attempt in attempts {
            let delivery = reader.next().await.unwrap().unwrap();
            assert_eq!(delivery.attempt, attempt, "{queue_type:?}");
            assert_eq!(delivery.is_redelivered(), attempt > 1);
            delivery.nack().await.unwrap();
            let error = reader.next().await.unwrap_err();
            assert!(error.to_string().contains("given back"), "{error}");
            reader = broker.subscribe(subscription.clone()).await.unwrap();
        }
        reader.next().await.unwrap().unwrap().ack().await.unwrap();
    }
}

#[tokio::test]
async fn a_next_that_is_dropped_all_the_time_loses_nothing() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    let mut reader = read_all(&broker, &["Happened"]).await;
    // Another group's, and so passed over by nobody.
    let publishing = {
        let broker = broker.clone();
        tokio::spawn(async move {
            for n in 1..=300 {
                publish(&broker, &[event("Happened", "1", n)]).await;
            }
        })
    };
    let mut n = 0;
    while n < 300 {
        let next = tokio::time::timeout(Duration::from_micros(50), reader.next());
        if let Ok(delivery) = next.await {
            let delivery = delivery.unwrap().unwrap();
            n += 1;
            assert_eq!(sequence(&delivery), n);
            delivery.ack().await.unwrap();
        }
    }
    publishing.await.unwrap();
}

/// Messages of types that the group does not want any more, though its queues are still bound.
#[tokio::test]
async fn what_is_not_wanted_any_more_is_passed_over_and_done() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    drop(read_all(&broker, &["Wanted", "Unwanted"]).await);
    for n in 1..=100 {
        publish(&broker, &[event("Unwanted", "1", n)]).await;
    }
    publish(&broker, &[event("Wanted", "1", 101)]).await;
    // More than it may have at a time: they are acknowledged on the way.
    let options = ground.options().prefetch(4);
    let narrow = RabbitMqBroker::new(&ground.url, options).unwrap();
    let mut reader: Reading = read_all(&narrow, &["Wanted"]).await;
    let delivery = reader.next().await.unwrap().unwrap();
    assert_eq!(sequence(&delivery), 101);
    delivery.ack().await.unwrap();
    drop(reader);
    let mut again = read_all(&narrow, &["Wanted", "Unwanted"]).await;
    publish(&broker, &[event("Wanted", "1", 102)]).await;
    assert_eq!(sequence(&again.next().await.unwrap().unwrap()), 102);
}

#[tokio::test]
async fn a_partition_that_there_is_not_is_refused() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let subscription = Subscription::new("group", ["Happened"]).of_partition(4);
    let Err(error) = rabbit(&ground).subscribe(subscription).await else {
        panic!("it reads a fifth of four partitions");
    };
    assert!(error.to_string().contains("partition 4"), "{error}");
}
