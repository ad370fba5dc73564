//! What a broker can do, as it is seen to do it.

use std::sync::Arc;
use std::time::Duration;

use outbox_runtime::broker::{Broker, Sharing};

use super::delivering::{published, sequence};
use super::{Ground, Member, event};
use crate::brokers::TestBroker;

/// Where brokers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// A group that is new gets what was published before it joined.
    pub keeps_for_new_groups: bool,
    /// A message that is published again while the broker remembers it is dropped.
    pub drops_repetitions: bool,
    /// A message of a type that no group ever asked for is taken.
    pub takes_what_nobody_wants: bool,
    /// The broker itself shares a group's messages out among its members.
    pub shares_out_itself: bool,
    /// After a crash, what was acknowledged out of turn does not come again.
    pub remembers_each_acknowledgement: bool,
    /// A delivery that is a repetition says so.
    pub counts_deliveries: bool,
    /// A delivery says when the broker took the message.
    pub knows_when_published: bool,
}

impl Capabilities {
    /// What the broker was seen to do; `None` if there is none here.
    pub async fn of<B: TestBroker>() -> Option<Self> {
        let ground = Ground::<B>::shared()?;
        let broker = ground.broker();
        let (drops_repetitions, knows_when_published) = repeated(&broker).await;
        let (remembers_each_acknowledgement, counts_deliveries) = crashed(&broker).await;
        Some(Self {
            keeps_for_new_groups: keeps(&broker).await,
            drops_repetitions,
            takes_what_nobody_wants: takes_unwanted(&ground).await,
            shares_out_itself: broker.sharing() == Sharing::ByBroker,
            remembers_each_acknowledgement,
            counts_deliveries,
            knows_when_published,
        })
    }

    /// Each by its name, in words.
    pub fn rows(&self) -> [(&'static str, &'static str); 7] {
        let of = |is: bool, yes, no| if is { yes } else { no };
        [
            (
                "a group that is new gets",
                of(
                    self.keeps_for_new_groups,
                    "all that is still there",
                    "what is published from then on",
                ),
            ),
            (
                "a message that is published again",
                of(self.drops_repetitions, "is dropped", "is kept twice"),
            ),
            (
                "an event that no group asked for",
                of(
                    self.takes_what_nobody_wants,
                    "is kept",
                    "is refused, unless told",
                ),
            ),
            (
                "partitions are shared out",
                of(
                    self.shares_out_itself,
                    "by the broker",
                    "by leases in the database",
                ),
            ),
            (
                "after a crash comes again",
                of(
                    self.remembers_each_acknowledgement,
                    "what was not acknowledged",
                    "all from the first that was not acknowledged",
                ),
            ),
            (
                "a delivery says that it is a repetition",
                of(self.counts_deliveries, "yes", "no"),
            ),
            (
                "a delivery says when it was published",
                of(self.knows_when_published, "yes", "no"),
            ),
        ]
    }
}

/// Whether a repetition is dropped, and whether a delivery has a time.
async fn repeated(broker: &Arc<dyn Broker>) -> (bool, bool) {
    let mut member = Member::join(broker, "repeated", &["Repeated"]).await;
    let message = event("Repeated", "1", 1);
    published(broker, std::slice::from_ref(&message)).await;
    published(broker, std::slice::from_ref(&message)).await;
    published(broker, &[event("Repeated", "1", 2)]).await;
    let mut arrived = Vec::new();
    let mut has_time = true;
    while arrived.last() != Some(&2) {
        let delivery = member.next().await;
        arrived.push(sequence(&delivery.message));
        has_time &= delivery.published_at().is_some();
        delivery.ack().await.unwrap();
    }
    member.leave().await;
    assert!(arrived == [1, 2] || arrived == [1, 1, 2], "{arrived:?}");
    (arrived.len() == 2, has_time)
}

/// What comes again after a crash, and whether it says so.
async fn crashed(broker: &Arc<dyn Broker>) -> (bool, bool) {
    let mut first = Member::join(broker, "crashed", &["Crashed"]).await;
    let messages: Vec<_> = (1..=4).map(|n| event("Crashed", "1", n)).collect();
    published(broker, &messages).await;
    let mut held = Vec::new();
    for n in 1..=3 {
        let delivery = first.next().await;
        match n {
            2 => delivery.ack().await.unwrap(),
            _ => held.push(delivery),
        }
    }
    first.leave().await;
    drop(held);
    let mut second = Member::join(broker, "crashed", &["Crashed"]).await;
    let mut again = Vec::new();
    let mut says_so = false;
    while again.last() != Some(&4) {
        let delivery = second.next().await;
        let sequence = sequence(&delivery.message);
        says_so |= sequence == 1 && delivery.is_redelivered();
        again.push(sequence);
        delivery.ack().await.unwrap();
    }
    second.leave().await;
    assert!(again == [1, 3, 4] || again == [1, 2, 3, 4], "{again:?}");
    (again.len() == 3, says_so)
}

async fn keeps(broker: &Arc<dyn Broker>) -> bool {
    // The topic's own things, and one group, are there already.
    let early = Member::join(broker, "early", &["Kept"]).await;
    published(broker, &[event("Kept", "1", 1)]).await;
    let mut late = Member::join(broker, "late", &["Kept"]).await;
    let next = late.next_within(Duration::from_secs(5)).await.is_some();
    late.leave().await;
    early.leave().await;
    next
}

async fn takes_unwanted<B: TestBroker>(ground: &Ground<B>) -> bool {
    let broker = ground.broker();
    let results = broker.publish(&[event("Unwanted", "1", 1)]).await;
    results[0].is_ok()
}
