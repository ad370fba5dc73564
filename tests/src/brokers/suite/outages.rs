//! Brokers that are down, die or stand still.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_runtime::Message;
use outbox_runtime::broker::{Broker, Publisher, Subscriber, Subscription};

use super::delivering::{in_order, published};
use super::{Ground, Member, event};
use crate::brokers::TestBroker;

/// The service starts, and drains its backlog when the broker comes.
pub async fn a_broker_that_is_down_at_the_start_is_waited_for<B: TestBroker>() {
    let Some(mut ground) = Ground::<B>::private() else {
        return;
    };
    ground.server().stop();
    let broker = ground.broker();
    let (mut member, _) = Member::join_later(&broker, "group", &["Happened"]);
    let messages: Vec<_> = (1..=20).map(|n| event("Happened", "1", n)).collect();
    for result in broker.publish(&messages).await {
        assert!(result.unwrap_err().is_transient());
    }
    let subscription = Subscription::new("other", ["Happened"]).of_partition(0);
    if let Ok(mut deliveries) = broker.subscribe(subscription).await {
        // A client that connects by itself later has nothing to say yet.
        let next = tokio::time::timeout(Duration::from_secs(1), deliveries.next()).await;
        assert!(!matches!(next, Ok(Ok(_))), "it delivers without a broker");
    }
    ground.server().run().unwrap();
    publish_all(&broker, messages).await;
    assert_eq!(in_order(&member.take_distinct(20).await)["1"], 20);
}

/// Twice, while four tasks publish and a member reads.
pub async fn nothing_is_lost_when_the_broker_is_killed_midway<B: TestBroker>() {
    let Some(mut ground) = Ground::<B>::private() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let mut publishing = Vec::new();
    for part in 0..4 {
        let broker = Arc::clone(&broker);
        publishing.push(tokio::spawn(async move {
            for round in 0..60 {
                let messages: Vec<_> = (0..10)
                    .map(|n| {
                        event(
                            "Happened",
                            &format!("{part}-{}", n % 5),
                            round * 2 + n / 5 + 1,
                        )
                    })
                    .collect();
                publish_all(&broker, messages).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }));
    }
    let mut messages = member.take_distinct(400).await;
    for _ in 0..2 {
        let server = ground.server();
        match B::KIND.keeps_confirmed_when_killed() {
            true => server.kill(),
            false => server.stop(),
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.run().unwrap();
        let more = take_more(&mut member, &messages, 400).await;
        messages.extend(more);
    }
    for task in publishing {
        task.await.unwrap();
    }
    let rest = 2400 - messages.len();
    let more = take_more(&mut member, &messages, rest).await;
    messages.extend(more);
    let last = in_order(&messages);
    assert_eq!(last.len(), 20);
    assert!(last.values().all(|&last| last == 120), "{last:?}");
}

/// It is stopped in the middle of everything and goes on later.
pub async fn a_broker_that_stands_still_is_not_waited_for_for_ever<B: TestBroker>() {
    let Some(mut ground) = Ground::<B>::private() else {
        return;
    };
    let broker = ground.broker_with(ground.options().confirm_within(Duration::from_millis(500)));
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    published(&broker, &[event("Happened", "1", 1)]).await;
    ground.server().pause();
    let unconfirmed = [event("Happened", "2", 1)];
    let publishing = broker.publish(&unconfirmed);
    let results = tokio::time::timeout(Duration::from_secs(30), publishing).await;
    let results = results.expect("the call ends by itself");
    let error = results[0].as_ref().unwrap_err();
    assert!(error.is_transient(), "{error}");
    ground.server().resume();
    publish_all(&broker, vec![event("Happened", "1", 2)]).await;
    let mut arrived = member.take_distinct(2).await;
    // What was not confirmed may have been taken all the same.
    if arrived
        .iter()
        .any(|message| message.metadata.aggregate.as_ref().unwrap().aggregate_id == "2")
    {
        arrived.extend(take_more(&mut member, &arrived, 1).await);
    }
    assert_eq!(in_order(&arrived)["1"], 2);
}

/// Offers messages of an aggregate until all are taken, as a relay does.
///
/// # Panics
/// After a minute.
pub(super) async fn publish_all(broker: &Arc<dyn Broker>, mut messages: Vec<Message>) {
    let since = Instant::now();
    loop {
        let mut results = broker.publish(&messages).await.into_iter();
        messages.retain(|_| match results.next().expect("a result for each") {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                assert!(since.elapsed() < Duration::from_secs(60), "{error}");
                true
            }
        });
        if messages.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// So many messages that are not among those.
async fn take_more(member: &mut Member, known: &[Message], count: usize) -> Vec<Message> {
    let mut seen: std::collections::HashSet<_> = known
        .iter()
        .map(|message| message.metadata.message_id)
        .collect();
    let mut more = Vec::new();
    while more.len() < count {
        let message = member.take().await;
        if seen.insert(message.metadata.message_id) {
            more.push(message);
        }
    }
    more
}
