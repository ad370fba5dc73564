//! What RabbitMQ says to a publisher.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use lapin::options::{BasicConsumeOptions, ConfirmSelectOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use outbox_runtime::broker::{ContentMode, Publisher, RabbitMqBroker, Unroutable};
use outbox_servers::Setup;
use outbox_tests::brokers::RabbitMq;
use outbox_tests::brokers::suite::{Ground, Member, event, wait_until};

use super::{channel, exchange, publish, rabbit, read_all, sequence};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_what_no_queue_is_bound_for_is_refused() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground).unroutable_after(Duration::ZERO);
    let mut reader = read_all(&broker, &["Read"]).await;
    // Side by side in one call, so that returns and confirmations of many come together.
    for round in 1..=5 {
        let messages: Vec<_> = (0..200)
            .map(|n| {
                let event_type = if n % 3 == 0 { "Unread" } else { "Read" };
                event(event_type, &format!("{event_type}-{n}"), round)
            })
            .collect();
        let results = broker.publish(&messages).await;
        for (message, result) in messages.iter().zip(results) {
            match message.metadata.event_type.as_str() {
                "Read" => result.unwrap(),
                _ => {
                    let error = result.unwrap_err();
                    assert!(!error.is_transient(), "{error}");
                    assert!(error.to_string().contains("nobody_reads"), "{error}");
                    assert!(!error.to_string().contains(&message.payload), "{error}");
                }
            }
        }
        for _ in 0..133 {
            let delivery = reader.next().await.unwrap().unwrap();
            assert_eq!(sequence(&delivery), round);
            delivery.ack().await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_may_have_no_reader_counts_as_published() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    let _reader = read_all(&broker, &["Read"]).await;
    let messages = [event("Unread", "1", 1), event("Other", "2", 1)];
    let named = broker.clone().nobody_reads(["Unread"]);
    let named = named.unroutable_after(Duration::ZERO);
    let results = named.publish(&messages).await;
    assert!(results[0].is_ok(), "{results:?}");
    assert!(!results[1].as_ref().unwrap_err().is_transient());
    for result in broker
        .unroutable(Unroutable::Accept)
        .publish(&messages)
        .await
    {
        result.unwrap();
    }
}

/// Whoever made the exchange: consumers that are about to bind are in other processes, too.
#[tokio::test]
async fn queues_are_waited_for_behind_an_exchange_that_any_relay_made() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let relays = [rabbit(&ground), rabbit(&ground)];
    let message = event("Happened", "1", 1);
    for relay in &relays {
        let results = relay.publish(std::slice::from_ref(&message)).await;
        let error = results[0].as_ref().unwrap_err();
        assert!(error.is_transient(), "{error}");
        let text = error.to_string();
        for part in ["since 2", "60s", "nobody_reads", &exchange(&ground)] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains(&message.payload), "{text}");
    }
    let mut reader = read_all(&rabbit(&ground), &["Happened"]).await;
    for relay in &relays {
        publish(relay, std::slice::from_ref(&message)).await;
        let delivery = reader.next().await.unwrap().unwrap();
        assert_eq!(delivery.message, message);
        delivery.ack().await.unwrap();
    }
}

#[tokio::test]
async fn what_stays_without_a_queue_is_refused_after_a_time_that_counts_anew_after_a_success() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground).unroutable_after(Duration::from_millis(1_500));
    let is_transient = async |event_type: &str| {
        let results = broker.publish(&[event(event_type, "1", 1)]).await;
        results[0].as_ref().unwrap_err().is_transient()
    };
    assert!(is_transient("Happened").await);
    wait_until("the time is over", async || !is_transient("Happened").await).await;
    // Another kind has a time of its own.
    assert!(is_transient("Paid").await);
    drop(read_all(&broker, &["Happened"]).await);
    publish(&broker, &[event("Happened", "1", 1)]).await;
    let (_connection, channel) = channel(&ground).await;
    for partition in 0..4 {
        let queue = format!("{}.group.{partition}", exchange(&ground));
        let deleted = channel.queue_delete(queue.into(), QueueDeleteOptions::default());
        deleted.await.unwrap();
    }
    assert!(is_transient("Happened").await);
}

#[tokio::test]
async fn names_that_amqp_can_not_hold_and_headers_that_no_frame_holds_are_refused_for_good() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    let mut reader = read_all(&broker, &["Happened"]).await;
    let mut heavy = event("Happened", "1", 1);
    let header = ("tenant".to_owned(), "x".repeat(200_000));
    heavy.metadata.headers = BTreeMap::from([header]);
    let messages = [
        heavy,
        event("Happened", "2", 1),
        event(&"long".repeat(70), "3", 1),
        event("Happened", "4", 1),
    ];
    let results = broker.publish(&messages).await;
    for (refused, says) in [(0, "frame_max"), (2, "255 bytes")] {
        let error = results[refused].as_ref().unwrap_err();
        assert!(!error.is_transient(), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(results[1].is_ok() && results[3].is_ok(), "{results:?}");
    // In the body there is room for it.
    let structured = ground.options().content_mode(ContentMode::Structured);
    let structured = RabbitMqBroker::new(&ground.url, structured).unwrap();
    for result in structured.publish(&messages[..1]).await {
        result.unwrap();
    }
    let mut arrived = Vec::new();
    for _ in 0..3 {
        arrived.push(reader.next().await.unwrap().unwrap());
    }
    let heavy = arrived.iter().find(|one| one.message == messages[0]);
    assert!(heavy.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_above_the_servers_limit_is_refused_alone() {
    let setup = Setup::default().environment(
        "RABBITMQ_SERVER_START_ARGS",
        "-rabbit max_message_size 10000",
    );
    let Some(ground) = Ground::<RabbitMq>::with(setup) else {
        return;
    };
    let broker = rabbit(&ground);
    let mut reader = read_all(&broker, &["Happened"]).await;
    let messages: Vec<_> = (0..40)
        .map(|n| {
            let mut message = event("Happened", &n.to_string(), 1);
            if n % 4 == 0 {
                message.payload = format!("\"{}\"", "x".repeat(20_000));
            }
            message
        })
        .collect();
    let results = broker.publish(&messages).await;
    for (n, result) in results.iter().enumerate() {
        match result {
            Ok(()) => assert_ne!(n % 4, 0),
            Err(error) => {
                assert_eq!(n % 4, 0, "{error}");
                assert!(!error.is_transient(), "{error}");
            }
        }
    }
    for _ in 0..30 {
        reader.next().await.unwrap().unwrap().ack().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_short_of_memory_is_told_and_readers_go_on() {
    let setup = Setup::default().environment(
        "RABBITMQ_SERVER_START_ARGS",
        "-rabbit vm_memory_high_watermark 0.0001",
    );
    let Some(ground) = Ground::<RabbitMq>::with(setup) else {
        return;
    };
    let options = ground.options().confirm_within(Duration::from_millis(300));
    let broker = RabbitMqBroker::new(&ground.url, options).unwrap();
    let _reader = read_all(&broker, &["Happened"]).await;
    wait_until("the server is short of memory", async || {
        let results = broker.publish(&[event("Happened", "1", 1)]).await;
        match &results[0] {
            // The alarm comes a moment after the start.
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                error.to_string().contains("memory or disk")
            }
        }
    })
    .await;
    let _another = read_all(&rabbit(&ground), &["Happened"]).await;
}

#[tokio::test]
async fn messages_are_persistent_and_tell_their_id_type_and_time() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let broker = rabbit(&ground);
    let reader = read_all(&broker, &["order.placed"]).await;
    let message = event("order.placed", "1", 1);
    for result in broker.publish(std::slice::from_ref(&message)).await {
        result.unwrap();
    }
    drop(reader);
    let (_connection, channel) = channel(&ground).await;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    let mut seen = Vec::new();
    for partition in 0..4 {
        let queue = format!("{}.group.{partition}", exchange(&ground));
        let consumer = channel.basic_consume(
            queue.into(),
            "".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        let mut consumer = consumer.await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(2), consumer.next());
        if let Ok(Some(delivery)) = next.await {
            seen.push((partition, delivery.unwrap()));
        }
    }
    assert_eq!(seen.len(), 1);
    let (partition, delivery) = &seen[0];
    assert_eq!(
        delivery.routing_key.as_str(),
        format!("{partition}.order.placed")
    );
    let properties = &delivery.properties;
    assert_eq!(*properties.delivery_mode(), Some(2));
    let id = message.metadata.message_id.to_string();
    assert_eq!(properties.message_id().as_ref().unwrap().as_str(), id);
    assert_eq!(properties.kind().as_ref().unwrap().as_str(), "order.placed");
    assert!(properties.timestamp().unwrap() > 1_700_000_000);
}

#[tokio::test]
async fn the_next_host_of_a_cluster_is_tried() {
    let Some(ground) = Ground::<RabbitMq>::shared() else {
        return;
    };
    let url = ground.url.replace("127.0.0.1:", "127.0.0.1:1,127.0.0.1:");
    let broker = outbox_runtime::broker::open(&url, ground.options()).unwrap();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let message = event("Happened", "1", 1);
    for result in broker.publish(std::slice::from_ref(&message)).await {
        result.unwrap();
    }
    assert_eq!(member.take().await, message);
}
