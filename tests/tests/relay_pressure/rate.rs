//! The rate limit. What goes out in which time is proved beside its source, where time can be set.

use std::time::Duration;

use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, on_both_databases,
    quick,
};

on_both_databases!(
    no_call_holds_more_than_the_burst_and_all_arrives_in_order,
    a_large_aggregate_leaves_the_others_their_turns,
    a_shutdown_does_not_wait_for_the_rate,
);

async fn no_call_holds_more_than_the_burst_and_all_arrives_in_order<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    for aggregate in ["a", "b", "c"] {
        fixture.run_sql(&insert_events(aggregate, 1..=20)).await;
    }
    let publisher = RecordingPublisher::new();
    let options = quick().rate_limit(40, 7);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    publisher.wait_for(60).await;
    relay.stop().await;
    assert!(publisher.most_messages_in_a_call() <= 7);
    publisher.assert_complete(3, 20);
}

async fn a_large_aggregate_leaves_the_others_their_turns<DB: TestDatabase>(fixture: Fixture<DB>) {
    fixture.run_sql(&insert_events("large", 1..=300)).await;
    for aggregate in 0..20 {
        let events = insert_events(&format!("small{aggregate}"), [1]);
        fixture.run_sql(&events).await;
    }
    let publisher = RecordingPublisher::new();
    let options = quick().rate_limit(20, 5);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    let of_large = loop {
        let mut sequences = publisher.sequences();
        let of_large = sequences.remove("large").unwrap_or_default().len();
        if sequences.len() == 20 {
            break of_large;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    // A burst, and now and then a turn.
    assert!(of_large <= 30, "{of_large}");
    relay.stop().await;
}

async fn a_shutdown_does_not_wait_for_the_rate<DB: TestDatabase>(fixture: Fixture<DB>) {
    fixture.run_sql(&insert_events("a", 1..=100)).await;
    let publisher = RecordingPublisher::new();
    let options = quick()
        .lease(Duration::from_millis(600))
        .rate_limit(1, 2)
        .shutdown_deadline(Duration::from_secs(3000));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    publisher.wait_for(4).await;
    // Its leases were renewed all the while: nobody else could have claimed a shard.
    let epochs = "SELECT max(epoch) FROM outbox_shard";
    assert_eq!(fixture.number(epochs).await, 1);
    let stopped = tokio::time::timeout(Duration::from_secs(60), relay.stop()).await;
    assert!(stopped.is_ok(), "it waits for the rate");
    let owned = "SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL";
    assert_eq!(fixture.number(owned).await, 0);

    let rest = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(100).await;
    rest.stop().await;
    publisher.assert_complete(1, 100);
}
