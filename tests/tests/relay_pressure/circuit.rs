//! The circuit breaker around the broker.

use std::time::Duration;

use outbox_runtime::Message;
use outbox_runtime::broker::PublishError;
use outbox_runtime::relay::{Circuit, RelayOptions};
use outbox_tests::{
    Fixture, RecordingPublisher, RunningRelay, TestDatabase, insert_events, on_both_databases,
    quick,
};

on_both_databases!(
    an_open_circuit_lets_one_call_through_at_a_time_until_the_broker_is_back,
    a_broker_that_never_answers_opens_it_and_loses_nothing,
    a_poison_message_does_not_open_it,
    a_refusal_for_good_does_not_open_it,
    a_shutdown_does_not_wait_for_an_open_circuit,
    an_open_circuit_keeps_its_leases,
);

const PARKED: &str = "SELECT count(*) FROM outbox_parked";
const OWNED: &str = "SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL";

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let so = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), so).await;
    assert!(in_time.is_ok(), "{what}");
}

async fn insert<DB: TestDatabase>(fixture: &Fixture<DB>, aggregates: i64, last: i64) {
    for aggregate in 0..aggregates {
        let events = insert_events(&format!("a{aggregate}"), 1..=last);
        fixture.run_sql(&events).await;
    }
}

fn is_poison(message: &Message) -> bool {
    message.metadata.ordering_key().1.starts_with("poison")
}

/// A broker that takes all but what is poison.
fn dislikes_poison(error: fn() -> PublishError) -> RecordingPublisher {
    let publisher = RecordingPublisher::new();
    publisher.judge(move |message| match is_poison(message) {
        true => Err(error()),
        false => Ok(()),
    });
    publisher
}

async fn an_open_circuit_lets_one_call_through_at_a_time_until_the_broker_is_back<
    DB: TestDatabase,
>(
    fixture: Fixture<DB>,
) {
    let publisher = RecordingPublisher::with_delay(Duration::from_millis(2));
    publisher.go_down();
    insert(&fixture, 40, 3).await;
    // Small calls, so that many could be out at a time.
    let options = quick().batch_size(3).max_in_flight(8);
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    relay.opened().await;
    let text = relay
        .health
        .wait_for(|health| {
            health
                .to_string()
                .contains("the circuit to the broker is open")
        })
        .await
        .to_string();
    assert!(text.contains("next probe is due at"), "{text}");

    // Calls from before may be out still.
    until("a call is still out", async || publisher.calls_out() == 0).await;
    publisher.forget_the_most();
    let before = publisher.calls();
    until("no probes", async || publisher.calls() >= before + 8).await;
    assert_eq!(publisher.most_calls_out(), 1, "one probe at a time");
    assert_ne!(relay.circuit(), Circuit::Closed);
    assert_eq!(relay.counts().circuit_opened, 1);
    assert_eq!(publisher.distinct(), 0);

    publisher.accept();
    publisher.wait_for(120).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    assert_eq!(relay.circuit(), Circuit::Closed);
    assert_eq!(fixture.number(PARKED).await, 0);
    relay.stop().await;
    publisher.assert_complete(40, 3);
    assert_eq!(publisher.overlaps(), 0);
}

async fn a_broker_that_never_answers_opens_it_and_loses_nothing<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let publisher = RecordingPublisher::new();
    publisher.fall_silent();
    insert(&fixture, 30, 4).await;
    let options = quick()
        .batch_size(3)
        .publish_timeout(Duration::from_millis(30));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    relay.opened().await;
    until("a call is still out", async || publisher.calls_out() == 0).await;
    publisher.forget_the_most();
    let before = publisher.calls();
    until("no probes", async || publisher.calls() >= before + 3).await;
    assert_eq!(publisher.most_calls_out(), 1, "one probe at a time");

    publisher.accept();
    publisher.wait_for(120).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    assert_eq!(fixture.number(PARKED).await, 0);
    relay.stop().await;
    publisher.assert_complete(30, 4);
    assert_eq!(publisher.overlaps(), 0);
}

async fn a_poison_message_does_not_open_it<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = dislikes_poison(|| PublishError::transient("not now"));
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    // It is retried in place as long as nothing else is sent, and might be an outage.
    fixture.run_sql(&insert_events("poison0", [1])).await;
    until("no retries", async || publisher.calls() >= 12).await;
    assert_eq!(relay.counts().circuit_opened, 0);

    // More of them, each set aside since the broker takes others.
    let mut sent = 0;
    for poison in 0..6 {
        fixture
            .run_sql(&insert_events(&format!("poison{poison}"), [2]))
            .await;
        let rows = if poison == 0 { 2 } else { poison + 2 };
        until("not parked", async || {
            sent += 1;
            fixture.run_sql(&insert_events("a", [sent])).await;
            publisher.wait_for(usize::try_from(sent).unwrap()).await;
            fixture.number(PARKED).await == rows
        })
        .await;
    }
    // Their retries fail again and again, with nothing else to send.
    let before = publisher.calls();
    until("no retries", async || publisher.calls() >= before + 40).await;
    assert_eq!(relay.counts().circuit_opened, 0);
    assert_eq!(relay.circuit(), Circuit::Closed);
    publisher.accept();
    publisher.wait_for(usize::try_from(sent).unwrap() + 7).await;
    relay.stop().await;
}

async fn a_refusal_for_good_does_not_open_it<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = dislikes_poison(|| PublishError::permanent("never"));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, quick().batch_size(1));
    for poison in 0..30 {
        let events = insert_events(&format!("poison{poison}"), [1]);
        fixture.run_sql(&events).await;
    }
    until("not dead", async || fixture.number(PARKED).await == 30).await;
    assert_eq!(publisher.calls(), 30);
    assert_eq!(relay.counts().circuit_opened, 0);
    relay.stop().await;
}

/// Waits for the next probe so long that only something else can end a test.
fn patient() -> RelayOptions {
    let hour = Duration::from_secs(3600);
    quick()
        .batch_size(3)
        .backoff(outbox_runtime::backoff::Backoff::new(hour, hour))
}

async fn a_shutdown_does_not_wait_for_an_open_circuit<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.go_down();
    insert(&fixture, 30, 2).await;
    let options = patient().shutdown_deadline(Duration::from_secs(3000));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    relay.opened().await;
    let stopped = tokio::time::timeout(Duration::from_secs(60), relay.stop()).await;
    assert!(stopped.is_ok(), "it waits for the circuit");
    assert_eq!(fixture.number(OWNED).await, 0, "leases were given back");

    // Nothing is lost, and the next relay begins with a closed circuit.
    publisher.accept();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    publisher.wait_for(60).await;
    relay.stop().await;
    publisher.assert_complete(30, 2);
}

async fn an_open_circuit_keeps_its_leases<DB: TestDatabase>(fixture: Fixture<DB>) {
    let publisher = RecordingPublisher::new();
    publisher.go_down();
    insert(&fixture, 30, 2).await;
    let options = patient().lease(Duration::from_millis(600));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, options);
    relay.opened().await;
    // Epochs count the owners; they stay over many renewals.
    let epochs = "SELECT CAST(sum(epoch) AS bigint) FROM outbox_shard";
    let before = fixture.number(epochs).await;
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(fixture.number(OWNED).await, 64);
    }
    assert_eq!(fixture.number(epochs).await, before);
    relay.stop().await;
}
