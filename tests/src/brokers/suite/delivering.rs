//! What members of groups receive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outbox_runtime::Message;
use outbox_runtime::broker::{Broker, ContentMode};

use super::{Ground, Member, event};
use crate::brokers::TestBroker;

/// Envelope and payload, byte for byte, with when it was published.
pub async fn all_of_a_message_arrives_in_both_modes<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    for mode in [ContentMode::Binary, ContentMode::Structured] {
        let broker = ground.broker_with(ground.options().content_mode(mode));
        let mut member = Member::join(&broker, "group", &["order.placed", "Other"]).await;
        let mut full = event("order.placed", "ö/17 . *>", i64::MAX);
        let metadata = &mut full.metadata;
        metadata.schema_version = 7;
        metadata.correlation_id = "Größe \"1\" %20".to_owned();
        metadata.causation_id = Some("cause".to_owned());
        metadata.producer = "a service {1}".to_owned();
        metadata.traceparent =
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
        metadata.tracestate = Some("a=1,b=2".to_owned());
        metadata.headers = BTreeMap::from([("X-Tenant: é".to_owned(), "\"t\"\n".to_owned())]);
        full.payload = "{ \"b\": 1.0, \"a\":\"\\u00fc👩‍👩‍👧\" }".to_owned();
        let mut bare = event("Other", "", 1);
        bare.metadata.aggregate = None;
        bare.payload = "null".to_owned();
        for message in [full, bare] {
            published(&broker, std::slice::from_ref(&message)).await;
            let delivery = member.next().await;
            assert_eq!(delivery.message, message, "{mode:?}");
            assert_eq!(delivery.malformation(), None);
            assert_eq!(delivery.attempt, 1);
            if let Some(at) = delivery.published_at() {
                let age = time::OffsetDateTime::now_utc() - at;
                assert!(age.abs() < time::Duration::MINUTE, "{age}");
            }
            delivery.ack().await.unwrap();
        }
        member.leave().await;
    }
}

/// Many aggregates in one call, and several calls at a time.
pub async fn each_aggregate_arrives_in_its_order<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let publishing = (0..4).map(|part| {
        let broker = Arc::clone(&broker);
        tokio::spawn(async move {
            for round in 0..5 {
                let messages: Vec<_> = (0..50)
                    .map(|n| {
                        event(
                            "Happened",
                            &format!("{part}-{}", n % 5),
                            round * 10 + n / 5 + 1,
                        )
                    })
                    .collect();
                published(&broker, &messages).await;
            }
        })
    });
    for task in publishing.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let messages = member.take_distinct(1000).await;
    let of = in_order(&messages);
    assert_eq!(of.len(), 20);
    assert!(of.values().all(|&last| last == 50), "{of:?}");
}

/// Each group all of its types, and nothing else.
pub async fn each_group_gets_what_it_asked_for<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    // Neither name is a prefix of the other's by accident: that one contains the other is meant.
    let mut both = Member::join(&broker, "shop", &["A", "A.b"]).await;
    let mut one = Member::join(&broker, "shop.2", &["A"]).await;
    let messages = [event("A", "1", 1), event("A.b", "1", 2), event("A", "1", 3)];
    published(&broker, &messages).await;
    assert_eq!(both.take_distinct(3).await, messages);
    let two = one.take_distinct(2).await;
    assert_eq!(two, [messages[0].clone(), messages[2].clone()]);
    let more = one.next_within(Duration::from_millis(500)).await;
    assert!(more.is_none(), "{more:?}");
    if B::KEEPS_FOR_NEW_GROUPS {
        let mut late = Member::join(&broker, "late", &["A.b"]).await;
        assert_eq!(late.take().await, messages[1]);
    }
}

/// Those of handlers that are gone, or still to come.
pub async fn types_without_a_handler_are_delivered_when_told<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker_with(ground.options().deliver_also(["Gone"]));
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    // Somebody wants the third, so that no broker refuses it.
    let _other = Member::join(&ground.broker(), "other", &["Unwanted"]).await;
    let messages = [
        event("Gone", "1", 1),
        event("Unwanted", "1", 2),
        event("Happened", "1", 3),
    ];
    published(&broker, &messages).await;
    let arrived = member.take_distinct(2).await;
    assert_eq!(arrived, [messages[0].clone(), messages[2].clone()]);
}

/// A member dies with some done and some not.
pub async fn what_was_not_acknowledged_comes_again_in_order<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut first = Member::join(&broker, "group", &["Happened"]).await;
    let messages: Vec<_> = (1..=10).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let mut held = Vec::new();
    for (n, message) in messages.iter().take(8).enumerate() {
        let delivery = first.next().await;
        assert_eq!(delivery.message, *message);
        // One in the middle is done before those around it.
        if n < 3 || n == 5 {
            delivery.ack().await.unwrap();
        } else {
            held.push(delivery);
        }
    }
    first.leave().await;
    drop(held);
    let mut second = Member::join(&broker, "group", &["Happened"]).await;
    let mut again = Vec::new();
    while again.len() < 7 {
        let sequence = sequence(&second.take().await);
        // A broker that knows one position only repeats what was done out of turn.
        if sequence > 3 && !again.contains(&sequence) {
            again.push(sequence);
        }
        if again.len() == 6 && !again.contains(&6) {
            break;
        }
    }
    again.retain(|&sequence| sequence != 6);
    assert_eq!(again, [4, 5, 7, 8, 9, 10]);
    // What is done stays done.
    second.leave().await;
    let mut third = Member::join(&broker, "group", &["Happened"]).await;
    published(&broker, &[event("Happened", "1", 11)]).await;
    assert_eq!(sequence(&third.take().await), 11);
}

/// By an answer, and by dropping the delivery.
pub async fn what_was_given_back_comes_again_before_what_follows<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let messages: Vec<_> = (1..=6).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let mut given_back = BTreeSet::new();
    let mut done = Vec::new();
    while done.len() < 6 {
        let delivery = member.next().await;
        let n = sequence(&delivery.message);
        let is_next = done.last().map_or(1, |last| last + 1);
        if n > is_next {
            // It was on its way when an earlier one was given back: a consumer has it wait.
            drop(delivery);
            continue;
        }
        if [2, 5].contains(&n) && given_back.insert(n) {
            match n {
                2 => delivery.nack().await.unwrap(),
                _ => drop(delivery),
            }
            continue;
        }
        if delivery.ack().await.is_ok() && n == is_next {
            done.push(n);
        }
    }
    assert_eq!(done, [1, 2, 3, 4, 5, 6]);
    assert_eq!(given_back.len(), 2);
}

/// Two members at a time, and one that is left alone.
pub async fn members_of_a_group_share_its_messages_and_take_over<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut first = Member::join_once(&broker, "group", &["Happened"]).await;
    let batch = |from: i64| -> Vec<Message> {
        (0..200)
            .map(|n| event("Happened", &format!("{}", n % 20), from + n / 20))
            .collect()
    };
    published(&broker, &batch(1)).await;
    // Some are done, some are in work, when the second one comes.
    let mut distinct = BTreeSet::new();
    let mut order = BTreeMap::new();
    let mut in_work = Vec::new();
    for n in 0..60 {
        let delivery = first.next().await;
        if distinct.insert(delivery.message.metadata.message_id) {
            next_in_order(&mut order, &delivery.message);
        }
        match n < 40 {
            true => drop(delivery.ack().await),
            false => in_work.push(delivery),
        }
    }
    let (mut second, _) = Member::join_later(&ground.broker(), "group", &["Happened"]);
    published(&broker, &batch(11)).await;
    let mut alone = Some(first);
    let mut taken = 0;
    while distinct.len() < 400 {
        // Acknowledged outside of the choice, which drops what it did not choose.
        let delivery = match &mut alone {
            Some(first) => tokio::select! {
                delivery = first.next() => delivery,
                delivery = second.next() => delivery,
            },
            None => second.next().await,
        };
        let message = delivery.message.clone();
        drop(delivery.ack().await);
        if distinct.insert(message.metadata.message_id) {
            next_in_order(&mut order, &message);
        }
        taken += 1;
        if taken == 50 {
            for delivery in in_work.drain(..) {
                // Whoever has them by now absorbs it.
                drop(delivery.ack().await);
            }
        } else if taken == 100
            && let Some(first) = alone.take()
        {
            first.leave().await;
        }
    }
    assert!(order.values().all(|&last| last == 20), "{order:?}");
}

/// Nobody takes, and nothing piles up but what was asked for.
pub async fn a_slow_member_holds_no_more_than_its_prefetch<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    let broker = ground.broker_with(ground.options().prefetch(5));
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let messages: Vec<_> = (1..=40).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let mut held = Vec::new();
    while let Some(delivery) = member.next_within(Duration::from_secs(2)).await {
        held.push(delivery);
    }
    assert!((1..=5).contains(&held.len()), "{}", held.len());
    for delivery in held.drain(..) {
        delivery.ack().await.unwrap();
    }
    let mut last = 0;
    while last < 40 {
        last = sequence(&member.take().await);
    }
}

/// Publishes, and expects all of them to be taken. What a call had no time for goes with the next
/// one, as with a relay.
pub(super) async fn published(broker: &Arc<dyn Broker>, messages: &[Message]) {
    let mut left = messages.to_vec();
    while !left.is_empty() {
        let mut results = broker.publish(&left).await.into_iter();
        left.retain(|_| match results.next().unwrap() {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_withheld(), "{error}");
                true
            }
        });
    }
}

pub(super) fn sequence(message: &Message) -> i64 {
    message.metadata.aggregate.as_ref().unwrap().sequence
}

/// The last sequence of each aggregate, if each one's came without gap and turn.
pub(super) fn in_order(messages: &[Message]) -> BTreeMap<String, i64> {
    let mut last = BTreeMap::new();
    for message in messages {
        next_in_order(&mut last, message);
    }
    last
}

fn next_in_order(last: &mut BTreeMap<String, i64>, message: &Message) {
    let id = &message.metadata.aggregate.as_ref().unwrap().aggregate_id;
    let last = last.entry(id.clone()).or_insert(0);
    assert_eq!(sequence(message), *last + 1, "of {id}");
    *last += 1;
}
