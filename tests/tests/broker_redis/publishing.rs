//! What a server in trouble does to publishing.

use std::time::Duration;

use outbox_runtime::broker::{ContentMode, RedisBroker};
use outbox_servers::{Kind, Server};
use outbox_tests::brokers::Redis;
use outbox_tests::brokers::suite::{Ground, event, wait_until};

use crate::support::{
    broker, next, one_stream, publish, published, sequence, stream, subscribed, told,
};

/// Each aggregate stops at its first failure, and none of what is behind it is tried.
#[tokio::test]
async fn what_the_server_refuses_is_offered_again_and_nothing_overtakes_it() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    // No id is left for another entry.
    let last = "18446744073709551615-18446744073709551615";
    let stream = stream(&ground);
    let _: String = told(&ground.url, &["XADD", &stream, last, "a", "b"]).await;
    let broker = broker(&ground);
    let messages = [
        event("Happened", "1", 1),
        event("Happened", "2", 1),
        event("Happened", "1", 2),
    ];
    let errors = publish(&broker, &messages).await;
    for refused in [0, 1] {
        let error = errors[refused].as_ref().unwrap();
        assert!(error.is_transient() && !error.is_withheld(), "{error}");
        let text = error.to_string();
        assert!(text.contains("exhausted"), "{text}");
        assert!(text.contains(&stream), "{text}");
    }
    assert!(errors[2].as_ref().unwrap().is_withheld(), "{errors:?}");
    let entries: u64 = told(&ground.url, &["XLEN", &stream]).await;
    assert_eq!(entries, 1);
}

/// Publishing waits for memory; consuming needs none, also for who comes new.
#[tokio::test]
async fn a_full_memory_stops_publishing_and_not_consuming() {
    let Some(ground) = Ground::<Redis>::private() else {
        return;
    };
    let broker = broker(&ground);
    published(
        &broker,
        &[event("Happened", "1", 1), event("Happened", "1", 2)],
    )
    .await;
    let mut first = subscribed(&broker).await;
    next(&mut first).await.ack().await.unwrap();
    let _: () = told(&ground.url, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let errors = publish(&broker, &[event("Happened", "1", 3)]).await;
    let error = errors[0].as_ref().unwrap();
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("OOM"), "{error}");

    drop(first);
    let mut second = subscribed(&broker).await;
    let delivery = next(&mut second).await;
    assert_eq!(sequence(&delivery), 2);
    delivery.ack().await.unwrap();

    let _: () = told(&ground.url, &["CONFIG", "SET", "maxmemory", "0"]).await;
    published(&broker, &[event("Happened", "1", 3)]).await;
    assert_eq!(sequence(&next(&mut second).await), 3);
}

/// A failover behind the address: both sides go on once it leads to a primary.
#[tokio::test]
async fn a_server_that_becomes_a_replica_is_waited_for() {
    let Some(ground) = Ground::<Redis>::private() else {
        return;
    };
    let broker = broker(&ground);
    published(&broker, &[event("Happened", "1", 1)]).await;
    let _: () = told(&ground.url, &["REPLICAOF", "127.0.0.1", "1"]).await;
    let errors = publish(&broker, &[event("Happened", "1", 2)]).await;
    let error = errors[0].as_ref().unwrap();
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("READONLY"), "{error}");
    let _: () = told(&ground.url, &["REPLICAOF", "NO", "ONE"]).await;
    published(&broker, &[event("Happened", "1", 2)]).await;
    let mut deliveries = subscribed(&broker).await;
    for n in 1..=2 {
        let delivery = next(&mut deliveries).await;
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }
}

/// What too few replicas have is not published, although it may arrive.
#[tokio::test]
async fn replicas_are_waited_for_when_told() {
    let Some(ground) = Ground::<Redis>::private() else {
        return;
    };
    let broker = broker(&ground).wait_for(1, Duration::from_millis(200));
    let messages = [event("Happened", "1", 1), event("Happened", "2", 1)];
    for error in publish(&broker, &messages).await {
        let error = error.unwrap();
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    }
    let port = ground.server.as_ref().unwrap().port().to_string();
    let replica = Server::start(Kind::Redis).unwrap();
    let _: () = told(replica.url(), &["REPLICAOF", "127.0.0.1", &port]).await;
    wait_until("the replica has it", async || {
        publish(&broker, &messages)
            .await
            .iter()
            .all(Option::is_none)
    })
    .await;
    let stream = stream(&ground);
    let here: u64 = told(&ground.url, &["XLEN", &stream]).await;
    let there: u64 = told(replica.url(), &["XLEN", &stream]).await;
    assert!(there >= 4 && here >= there, "{here} and {there}");
}

/// An administrator may flush scripts, and a restart does.
#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_told_them_again() {
    let Some(ground) = Ground::<Redis>::private() else {
        return;
    };
    let broker = broker(&ground);
    let mut deliveries = subscribed(&broker).await;
    for n in 1..=3 {
        let _: () = told(&ground.url, &["SCRIPT", "FLUSH"]).await;
        published(&broker, &[event("Happened", "1", n)]).await;
        let delivery = next(&mut deliveries).await;
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }
}

/// More than one call of the script takes, by number and by size.
#[tokio::test]
async fn many_and_large_messages_go_in_order() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    let messages: Vec<_> = (1..=700)
        .map(|n| {
            let mut message = event("Happened", &(n % 2).to_string(), (n + 1) / 2);
            if n % 100 == 0 {
                message.payload = format!("\"{}\"", "x".repeat(600_000));
            }
            message
        })
        .collect();
    published(&broker, &messages).await;
    let mut deliveries = subscribed(&broker).await;
    for message in &messages {
        let delivery = next(&mut deliveries).await;
        assert!(
            delivery.message == *message,
            "{:?}",
            delivery.message.metadata
        );
        delivery.ack().await.unwrap();
    }
}

/// Old entries go when something is published; what is younger stays.
#[tokio::test]
async fn streams_keep_what_is_young_enough() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let stream = stream(&ground);
    let mut connection = Redis::connect(&ground.url).await;
    // Redis removes blocks of a hundred.
    for n in 1..=500 {
        let id = format!("1700000000000-{n}");
        let _: String =
            crate::support::ask(&mut connection, &["XADD", &stream, &id, "a", "b"]).await;
    }
    let hour = Duration::from_secs(60 * 60);
    let messages: Vec<_> = (1..=300).map(|n| event("Happened", "1", n)).collect();
    published(&broker(&ground).keep(hour), &messages).await;
    let entries: u64 = told(&ground.url, &["XLEN", &stream]).await;
    assert!((300..400).contains(&entries), "{entries}");
}

/// By default nothing is ever removed, also not what was acknowledged.
#[tokio::test]
async fn streams_keep_all_unless_told() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    let messages: Vec<_> = (1..=300).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let mut deliveries = subscribed(&broker).await;
    for _ in 1..=300 {
        next(&mut deliveries).await.ack().await.unwrap();
    }
    let entries: u64 = told(&ground.url, &["XLEN", &stream(&ground)]).await;
    assert_eq!(entries, 300);
}

/// In both modes, by protocol 3, in another database.
#[tokio::test]
async fn the_url_chooses_database_and_protocol() {
    let Some(mut ground) = Ground::<Redis>::shared() else {
        return;
    };
    ground.url = format!("{}/5?protocol=resp3", ground.url.trim_end_matches('/'));
    for mode in [ContentMode::Binary, ContentMode::Structured] {
        let options = one_stream(&ground).content_mode(mode);
        let broker = RedisBroker::new(&ground.url, options).unwrap();
        let mut deliveries = subscribed(&broker).await;
        // One that is there before the reader waits for news, and one that is the news.
        for n in 1..=2 {
            published(&broker, &[event("Happened", "1", n)]).await;
            let delivery = next(&mut deliveries).await;
            assert_eq!(sequence(&delivery), n);
            delivery.ack().await.unwrap();
        }
    }
    let mut connection = Redis::connect(&ground.url).await;
    let database = crate::support::ask::<u64>(&mut connection, &["XLEN", &stream(&ground)]).await;
    assert_eq!(database, 4);
}
