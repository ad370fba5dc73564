//! Several instances of a service at a broker that does not share its messages out among them.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod consumer_support;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use consumer_support::*;
use outbox_runtime::App;
use outbox_runtime::broker::{BrokerError, Deliveries, Subscriber, Subscription};
use outbox_runtime::prelude::*;
use outbox_tests::{
    Fixture, PartitionedBroker, RecordingPublisher, TestDatabase, bank, insert_events, message,
    on_both_databases,
};

on_both_databases!(
    partitions_are_shared_evenly_while_instances_come_and_go,
    what_is_given_up_is_taken_long_before_leases_are_renewed,
    an_app_without_a_partition_starts_all_the_same,
    what_a_crashed_instance_had_is_taken_over,
    a_former_owner_that_does_not_know_it_has_no_second_effect,
    a_database_that_is_away_ends_no_consumer,
);

const PARTITIONS: usize = 12;
const SOURCES: usize = 40;

fn start<DB>(
    fixture: &Fixture<DB>,
    broker: &PartitionedBroker,
    script: &Script,
    lease: Duration,
) -> Running<DB>
where
    DB: TestDatabase + Stores<Account>,
{
    let consumer = consumer(fixture, broker, script, &[CREDIT]);
    Running::start(consumer.with_options(options().lease(lease)))
}

async fn open_all<DB: TestDatabase>(fixture: &Fixture<DB>) {
    let ids: Vec<String> = (0..SOURCES).map(|source| format!("s{source}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    open_accounts(fixture, &ids).await;
}

/// One cent from each source in turn for its account.
fn publish(broker: &PartitionedBroker, sequences: std::ops::RangeInclusive<i64>) {
    for sequence in sequences {
        for source in 0..SOURCES {
            let source = format!("s{source}");
            broker.publish(&message(&paid(&source, 1), &source, sequence));
        }
    }
}

/// Waits until all partitions are owned and each of `instances` has its fair share.
async fn shared_among<DB: TestDatabase>(fixture: &Fixture<DB>, instances: usize) {
    let owned = "SELECT count(*) FROM inbox_partition WHERE owner IS NOT NULL";
    let most = "SELECT max(n) FROM \
        (SELECT count(*) AS n FROM inbox_partition WHERE owner IS NOT NULL GROUP BY owner) AS shares";
    let (all, share) = (PARTITIONS as i64, PARTITIONS.div_ceil(instances) as i64);
    let shared = async {
        while fixture.number(owned).await != all || fixture.number(most).await > share {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), shared).await;
    assert!(in_time.is_ok(), "never shared among {instances}");
}

/// Every message had one effect, in each source's order.
async fn complete<DB: TestDatabase>(fixture: &Fixture<DB>, script: &Script, last: i64) {
    let messages = SOURCES as i64 * last;
    let balances = fixture.number("SELECT CAST(sum(balance) AS bigint) FROM accounts");
    assert_eq!(balances.await, messages);
    assert_eq!(inbox(fixture).await, messages);
    let mut seen: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for attempt in script.attempts() {
        let sequences = seen.entry(attempt.aggregate_id).or_default();
        // An attempt whose owner was lost repeats one that was made.
        if !sequences.contains(&attempt.sequence) {
            sequences.push(attempt.sequence);
        }
    }
    assert_eq!(seen.len(), SOURCES);
    for (source, sequences) in seen {
        assert_eq!(sequences, (1..=last).collect::<Vec<_>>(), "{source}");
    }
}

async fn partitions_are_shared_evenly_while_instances_come_and_go<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_all(&fixture).await;
    let (broker, script) = (PartitionedBroker::new(PARTITIONS), Script::default());
    // Long enough not to be lost on a busy machine.
    let start = || start(&fixture, &broker, &script, Duration::from_secs(6));
    let first = start();
    shared_among(&fixture, 1).await;
    publish(&broker, 1..=3);
    let (second, third) = (start(), start());
    publish(&broker, 4..=6);
    shared_among(&fixture, 3).await;
    publish(&broker, 7..=9);
    first.stop().await.unwrap();
    publish(&broker, 10..=12);
    shared_among(&fixture, 2).await;
    eventually(|| broker.pending() == 0).await;
    let counts = [second.consumer.counts(), third.consumer.counts()];
    assert!(counts.iter().all(|counts| counts.handled > 0), "{counts:?}");
    assert_eq!(broker.read(), PARTITIONS);
    assert_eq!(broker.most_readers(), 1, "no partition has two readers");
    second.stop().await.unwrap();
    third.stop().await.unwrap();
    assert_eq!(broker.read(), 0);
    assert_eq!(fixture.number("SELECT count(*) FROM inbox_member").await, 0);
    complete(&fixture, &script, 12).await;
}

/// Leases are renewed every 20 minutes here: only the look for free partitions can be in time.
async fn what_is_given_up_is_taken_long_before_leases_are_renewed<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_all(&fixture).await;
    let (broker, script) = (PartitionedBroker::new(PARTITIONS), Script::default());
    let start = || start(&fixture, &broker, &script, Duration::from_secs(3600));
    let first = start();
    shared_among(&fixture, 1).await;
    let second = start();
    publish(&broker, 1..=3);
    eventually(|| broker.pending() == 0).await;
    assert_eq!(second.consumer.counts().handled, 0);
    first.stop().await.unwrap();
    publish(&broker, 4..=6);
    eventually(|| broker.pending() == 0).await;
    second.stop().await.unwrap();
    complete(&fixture, &script, 6).await;
}

/// Whose partitions are all others' has subscribed to what is its: an app relays then.
async fn an_app_without_a_partition_starts_all_the_same<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_all(&fixture).await;
    let (broker, script) = (PartitionedBroker::new(PARTITIONS), Script::default());
    let first = start(&fixture, &broker, &script, Duration::from_secs(3600));
    shared_among(&fixture, 1).await;
    let publisher = RecordingPublisher::new();
    let app = App::new(fixture.outbox.clone())
        .publisher(publisher.clone())
        .subscriber(broker.clone())
        .consumer_options(options())
        .without_table_check::<Account>()
        .without_table_check::<bank::Account>()
        .select_consumers(|name| name == CREDIT)
        .state(script.clone());
    let app = app.start().await.unwrap();
    let started = tokio::time::timeout(Duration::from_secs(60), app.started());
    assert!(started.await.is_ok(), "the app never started");
    fixture.run_sql(&insert_events("a", 1..=3)).await;
    publisher.wait_for(3).await;
    app.shutdown().await.unwrap();
    first.stop().await.unwrap();
}

async fn what_a_crashed_instance_had_is_taken_over<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_all(&fixture).await;
    let (broker, script) = (PartitionedBroker::new(PARTITIONS), Script::default());
    let start = || start(&fixture, &broker, &script, Duration::from_secs(1));
    let (first, second) = (start(), start());
    shared_among(&fixture, 2).await;
    publish(&broker, 1..=10);
    eventually(|| first.consumer.counts().handled > 20).await;
    first.crash().await;
    eventually(|| broker.pending() == 0).await;
    shared_among(&fixture, 1).await;
    second.stop().await.unwrap();
    complete(&fixture, &script, 10).await;
}

/// Reads the one partition without a lease, as who was paused and does not know yet that it is over.
#[derive(Clone)]
struct FormerOwner(PartitionedBroker);

#[async_trait]
impl Subscriber for FormerOwner {
    async fn subscribe(&self, wanted: Subscription) -> Result<Box<dyn Deliveries>, BrokerError> {
        self.0.subscribe(wanted.of_partition(0)).await
    }
}

async fn a_former_owner_that_does_not_know_it_has_no_second_effect<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_all(&fixture).await;
    let (broker, script) = (PartitionedBroker::new(1), Script::default());
    let owner = start(&fixture, &broker, &script, Duration::from_secs(3600));
    let former = FormerOwner(broker.clone());
    let former = Running::start(consumer(&fixture, &former, &script, &[CREDIT]));
    eventually(|| broker.most_readers() == 2).await;
    publish(&broker, 1..=10);
    let counts = || [&owner, &former].map(|one| one.consumer.counts());
    let taken = || counts().map(|one| one.handled + one.duplicates);
    // Each reads all of it, but for what the other had acknowledged by then.
    eventually(|| broker.pending() == 0 && taken().iter().sum::<u64>() > 400).await;
    owner.stop().await.unwrap();
    former.stop().await.unwrap();
    complete(&fixture, &script, 10).await;
}

async fn a_database_that_is_away_ends_no_consumer<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Account>,
{
    open_all(&fixture).await;
    fixture
        .run_sql("ALTER TABLE inbox_partition RENAME TO away")
        .await;
    let (broker, script) = (PartitionedBroker::new(PARTITIONS), Script::default());
    let running = start(&fixture, &broker, &script, Duration::from_secs(2));
    let health = running.consumer.health();
    let degraded = health.wait_for(|health| !health.is_healthy()).await;
    assert!(degraded.to_string().contains("leases"), "{degraded}");
    fixture
        .run_sql("ALTER TABLE away RENAME TO inbox_partition")
        .await;
    publish(&broker, 1..=2);
    eventually(|| broker.pending() == 0).await;
    health.wait_for(|health| health.is_healthy()).await;
    running.stop().await.unwrap();
    complete(&fixture, &script, 2).await;
}
