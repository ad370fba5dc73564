//! Streams, topics, exchanges and queues: made, missing, deleted.

use std::time::Duration;

use outbox_runtime::broker::{Publisher, Subscriber, Subscription};

use super::delivering::{published, sequence};
use super::outages::publish_all;
use super::{Ground, Member, event, wait_until};
use crate::brokers::TestBroker;

/// Both sides go on without a restart.
pub async fn what_was_deleted_while_running_is_made_again<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    published(&broker, &[event("Happened", "1", 1)]).await;
    member.take().await;
    B::delete(&ground.url, &ground.topics, "events").await;
    // Where a group gets only what is published after it has joined, what comes before that is
    // refused for now, and a relay offers it again. Another process's relay knows nothing of what
    // was there before.
    let elsewhere = ground.broker();
    let mut arrived = Vec::new();
    for n in 2..=11 {
        let message = event("Happened", &(n % 3).to_string(), n);
        let broker = [&broker, &elsewhere][usize::from(n % 2 == 0)];
        publish_all(broker, vec![message]).await;
    }
    wait_until("all that was published after that arrives", async || {
        while let Some(delivery) = member.next_within(Duration::from_millis(500)).await {
            let n = sequence(&delivery.message);
            if delivery.ack().await.is_ok() && !arrived.contains(&n) {
                arrived.push(n);
            }
        }
        arrived.len() == 10
    })
    .await;
    for aggregate in 0..3 {
        let of: Vec<_> = arrived.iter().filter(|n| *n % 3 == aggregate).collect();
        assert!(of.is_sorted(), "{arrived:?}");
    }
}

/// By publishers and by consumers, until somebody makes it.
pub async fn what_may_not_be_made_is_reported<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker_with(ground.options().declare(false));
    let message = event("Happened", "1", 1);
    let results = broker.publish(std::slice::from_ref(&message)).await;
    let error = results[0].as_ref().unwrap_err();
    assert!(error.is_transient(), "{error}");
    let namespace = ground.topics.namespace();
    assert!(error.to_string().contains(namespace), "{error}");
    let subscription = Subscription::new("group", ["Happened"]).of_partition(0);
    let Err(error) = broker.subscribe(subscription).await else {
        panic!("it subscribes to what is not there");
    };
    assert!(error.to_string().contains(namespace), "{error}");

    let _maker = Member::join(&ground.broker(), "group", &["Happened"]).await;
    published(&ground.broker(), &[event("Happened", "2", 1)]).await;
    wait_until("the message is taken", async || {
        broker.publish(std::slice::from_ref(&message)).await[0].is_ok()
    })
    .await;
}

/// One topic for some types, and another for the rest; a group reads from both.
pub async fn types_can_have_topics_of_their_own<B: TestBroker>() {
    let Some(mut ground) = Ground::<B>::shared() else {
        return;
    };
    ground.topics = ground.topics.clone().topic("Billed", "billing").unwrap();
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened", "Billed"]).await;
    let mut other = Member::join(&broker, "other", &["Billed"]).await;
    let mut tap = B::tap(&ground.url, &ground.topics, "billing").await;
    let messages = [event("Happened", "1", 1), event("Billed", "2", 1)];
    published(&broker, &messages).await;
    let mut types: Vec<_> = member
        .take_distinct(2)
        .await
        .into_iter()
        .map(|message| message.metadata.event_type)
        .collect();
    types.sort();
    assert_eq!(types, ["Billed", "Happened"]);
    assert_eq!(other.take().await, messages[1]);
    assert_eq!(tap.next().await.body, messages[1].payload.as_bytes());
}
