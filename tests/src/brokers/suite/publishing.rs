//! What publishers are told.

use std::time::Duration;

use outbox_runtime::broker::{ContentMode, Publisher};

use super::delivering::{in_order, published, sequence};
use super::{Ground, Member, event};
use crate::brokers::TestBroker;

/// The broker may drop it or keep it twice: it has taken it either way.
pub async fn a_repetition_counts_as_published<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let messages = [event("Happened", "1", 1), event("Happened", "1", 2)];
    published(&broker, &messages).await;
    published(&broker, &messages).await;
    published(&broker, &[event("Happened", "1", 3)]).await;
    let sequences = member.take_distinct(3).await;
    assert_eq!(in_order(&sequences)["1"], 3);
}

/// It is a permanent failure, what follows of its aggregate is held back, and all else goes.
pub async fn a_message_that_is_too_large_stops_its_own_aggregate_alone<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let (broker, bytes) = B::open_limited(&ground.url, ground.options());
    let mut member = Member::join(&ground.broker(), "group", &["Happened"]).await;
    let mut large = event("Happened", "large", 2);
    large.payload = format!("\"{}\"", "x".repeat(bytes));
    let messages = [
        event("Happened", "large", 1),
        event("Happened", "other", 1),
        large,
        event("Happened", "large", 3),
        event("Happened", "other", 2),
    ];
    let results = broker.publish(&messages).await;
    assert_eq!(results.len(), 5);
    for fine in [0, 1, 4] {
        assert!(results[fine].is_ok(), "{fine}: {:?}", results[fine]);
    }
    let refused = results[2].as_ref().unwrap_err();
    assert!(!refused.is_transient(), "{refused}");
    assert!(!refused.to_string().contains("xxx"), "{refused}");
    let behind = results[3].as_ref().unwrap_err();
    assert!(behind.is_withheld(), "{behind}");
    let arrived = member.take_distinct(3).await;
    assert!(arrived.iter().all(|message| sequence(message) < 3));
    assert_eq!(in_order(&arrived)["other"], 2);
}

/// It would be none the next time either.
pub async fn a_message_that_is_no_cloud_event_is_refused_for_good<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let structured = ground.options().content_mode(ContentMode::Structured);
    let broker = ground.broker_with(structured);
    let _member = Member::join(&broker, "group", &["Happened"]).await;
    let mut broken = event("Happened", "1", 1);
    broken.payload = "{ secret".to_owned();
    let results = broker.publish(&[broken, event("Happened", "2", 1)]).await;
    let refused = results[0].as_ref().unwrap_err();
    assert!(!refused.is_transient(), "{refused}");
    assert!(!refused.to_string().contains("secret"), "{refused}");
    assert!(results[1].is_ok(), "{:?}", results[1]);
}

/// A relay's timeout drops calls at any point.
pub async fn a_call_that_is_dropped_leaves_the_broker_usable<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let mut messages: Vec<_> = (1..=200).map(|n| event("Happened", "1", n)).collect();
    let mut patience = Duration::from_micros(100);
    while !messages.is_empty() {
        if let Ok(results) = tokio::time::timeout(patience, broker.publish(&messages)).await {
            let taken = results.iter().take_while(|result| result.is_ok()).count();
            messages.drain(..taken);
        }
        patience *= 2;
    }
    assert_eq!(in_order(&member.take_distinct(200).await)["1"], 200);
}
