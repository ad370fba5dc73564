//! Members that come and go, and what a group has committed.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_runtime::Message;
use outbox_runtime::broker::{Broker, KafkaBroker, Publisher, Subscriber, Subscription};
use outbox_tests::brokers::Kafka;
use outbox_tests::brokers::suite::{Ground, Member, event, wait_until};
use tokio::task::JoinHandle;

use super::plain;

/// The partitions of a suite's topic.
const PARTITIONS: i32 = 4;

fn group(ground: &Ground<Kafka>) -> String {
    format!("{}.group", ground.topics.namespace())
}

async fn published(broker: &Arc<dyn Broker>, messages: &[Message]) {
    for result in broker.publish(messages).await {
        result.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_are_committed_up_to_the_first_unfinished_one() {
    let Some(ground) = Ground::<Kafka>::shared() else {
        return;
    };
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let messages: Vec<_> = (1..=10).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let mut held = BTreeMap::new();
    for offset in 0..10 {
        held.insert(offset, member.next().await);
    }
    let topic = plain::events(&ground.topics);
    // Another type's message stands between, which nobody wants.
    published(&broker, &[event("Other", "1", 11)]).await;
    for (finished, expected) in [
        (&[5, 7, 1][..], 0),
        (&[0], 2),
        (&[2, 3, 4], 6),
        (&[6, 9], 8),
        (&[8], 11),
    ] {
        for offset in finished {
            held.remove(offset).unwrap().ack().await.unwrap();
        }
        wait_until("the position is committed", async || {
            let group = group(&ground);
            let committed = plain::committed(&ground.url, &group, &topic, PARTITIONS).await;
            assert!(committed.iter().all(|(_, offset)| *offset <= expected));
            committed.iter().any(|(_, offset)| *offset == expected)
        })
        .await;
    }
}

/// What the members of a group saw together.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Message>>>);

/// A member that takes up to `batch` messages, waits a moment, and then finishes them.
fn start(broker: &KafkaBroker, seen: &Seen, batch: usize) -> JoinHandle<()> {
    let (broker, seen) = (broker.clone(), seen.clone());
    tokio::spawn(async move {
        let subscription = Subscription::new("group", ["Happened"]);
        let mut deliveries = broker.subscribe(subscription).await.unwrap();
        loop {
            let mut taken = vec![deliveries.next().await.unwrap().unwrap()];
            let more = Duration::from_millis(5);
            while taken.len() < batch
                && let Ok(next) = tokio::time::timeout(more, deliveries.next()).await
            {
                taken.push(next.unwrap().unwrap());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            for delivery in taken {
                seen.0.lock().unwrap().push(delivery.message.clone());
                // Of a partition that went meanwhile it comes again to somebody else.
                let _ = delivery.ack().await;
            }
        }
    })
}

/// Each message is finished, each key's in its order, and no lag is left.
///
/// The tests' server may forget to answer a member when several join at once, until the time for it
/// is over: it is short here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_in_the_middle_of_a_batch() {
    let Some(ground) = Ground::<Kafka>::shared() else {
        return;
    };
    let broker = KafkaBroker::new(&ground.url, ground.options())
        .unwrap()
        .set("session.timeout.ms", "6000")
        .unwrap()
        .set("max.poll.interval.ms", "6000")
        .unwrap();
    let seen = Seen::default();
    let count = |seen: &Seen| {
        let seen = seen.0.lock().unwrap();
        let ids: HashSet<_> = seen.iter().map(|it| it.metadata.message_id).collect();
        ids.len()
    };
    let mut members = vec![start(&broker, &seen, 20)];
    let publishing = {
        let broker = ground.broker();
        tokio::spawn(async move {
            for sequence in 1..=100 {
                let messages: Vec<_> = (0..20)
                    .map(|key| event("Happened", &key.to_string(), sequence))
                    .collect();
                published(&broker, &messages).await;
            }
        })
    };
    for (so_far, is_joining) in [
        (200, true),
        (500, true),
        (800, false),
        (1100, true),
        (1400, false),
        (1700, false),
    ] {
        wait_until("some are seen", async || count(&seen) >= so_far).await;
        if is_joining {
            members.push(start(&broker, &seen, 20));
        } else {
            // With some in work, as if it crashed, but that it leaves.
            members.remove(0).abort();
        }
    }
    publishing.await.unwrap();
    wait_until("all are seen", async || count(&seen) == 2000).await;
    let topic = plain::events(&ground.topics);
    let ends = plain::ends(&ground.url, &topic, PARTITIONS).await;
    assert_eq!(ends.iter().map(|(_, end)| end).sum::<i64>(), 2000);
    wait_until("all is committed", async || {
        plain::committed(&ground.url, &group(&ground), &topic, PARTITIONS).await == ends
    })
    .await;
    let seen = seen.0.lock().unwrap();
    let mut first: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for message in seen.iter() {
        let aggregate = message.metadata.aggregate.as_ref().unwrap();
        let sequences = first.entry(&aggregate.aggregate_id).or_default();
        if !sequences.contains(&aggregate.sequence) {
            sequences.push(aggregate.sequence);
        }
    }
    assert_eq!(first.len(), 20);
    for (key, sequences) in first {
        assert_eq!(sequences, (1..=100).collect::<Vec<_>>(), "{key}");
    }
    members.iter().for_each(JoinHandle::abort);
}

/// It takes nothing for longer than Kafka lets a member be silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_room_stays_in_its_group() {
    let Some(ground) = Ground::<Kafka>::shared() else {
        return;
    };
    let broker = KafkaBroker::new(&ground.url, ground.options().prefetch(4))
        .unwrap()
        .set("session.timeout.ms", "6000")
        .unwrap()
        .set("max.poll.interval.ms", "6000")
        .unwrap();
    let subscription = Subscription::new("group", ["Happened"]);
    let mut deliveries = broker.subscribe(subscription).await.unwrap();
    let messages: Vec<_> = (1..=20).map(|n| event("Happened", "1", n)).collect();
    for result in broker.publish(&messages).await {
        result.unwrap();
    }
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(deliveries.next().await.unwrap().unwrap());
    }
    let more = tokio::time::timeout(Duration::from_secs(8), deliveries.next()).await;
    assert!(more.is_err(), "no more than its prefetch");
    let mut sequences = Vec::new();
    for n in 0..20 {
        let delivery = match n {
            0..4 => held.remove(0),
            _ => deliveries.next().await.unwrap().unwrap(),
        };
        sequences.push(
            delivery
                .message
                .metadata
                .aggregate
                .clone()
                .unwrap()
                .sequence,
        );
        // It would fail if the partition had gone.
        delivery.ack().await.unwrap();
    }
    assert_eq!(sequences, (1..=20).collect::<Vec<_>>());
}

/// Its partitions were paused when the group forgot it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_room_goes_on_after_the_broker_was_away() {
    let Some(mut ground) = Ground::<Kafka>::private() else {
        return;
    };
    let broker = ground.broker_with(ground.options().prefetch(4));
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let messages: Vec<_> = (1..=20).map(|n| event("Happened", "1", n)).collect();
    published(&broker, &messages).await;
    let mut held = Vec::new();
    while let Some(delivery) = member.next_within(Duration::from_secs(1)).await {
        held.push(delivery);
    }
    assert_eq!(held.len(), 4);
    ground.server().stop();
    ground.server().run().unwrap();
    wait_until("the partitions have come back", async || {
        let first = member.next_within(Duration::from_millis(100)).await;
        first.map(|delivery| held.push(delivery)).is_some()
    })
    .await;
    for delivery in held {
        // The first four are of before.
        let _ = delivery.ack().await;
    }
    let rest = member.take_distinct(19).await;
    let last = rest.iter().map(|message| {
        let aggregate = message.metadata.aggregate.as_ref();
        aggregate.unwrap().sequence
    });
    assert_eq!(last.max(), Some(20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_the_broker_does_not_take_is_told() {
    let Some(ground) = Ground::<Kafka>::shared() else {
        return;
    };
    let broker = KafkaBroker::new(&ground.url, ground.options())
        .unwrap()
        .set("session.timeout.ms", "2000")
        .unwrap();
    let subscription = Subscription::new("group", ["Happened"]);
    let mut deliveries = broker.subscribe(subscription).await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(60), deliveries.next());
    let error = next.await.expect("an answer").unwrap_err().to_string();
    assert!(error.contains("session"), "{error}");
}
