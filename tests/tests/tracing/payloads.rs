use outbox_runtime::broker::PublishError;
use outbox_runtime::prelude::*;
use outbox_tests::{
    Fixture, Postman, RecordingPublisher, RunningRelay, message, on_both_databases,
};

use super::recorder::{install, text};
use super::shop::{
    Billing, Failing, ShopDb, app, eventually, open_shop, place, placed, relay_options, stop,
};

on_both_databases!(
    no_payload_is_told_by_the_relay,
    no_payload_is_told_by_a_consumer
);

const SECRET: &str = "card-4711-0815";

async fn no_payload_is_told_by_the_relay<DB: ShopDb>(fixture: Fixture<DB>) {
    install();
    open_shop(&fixture).await;
    let publisher = RecordingPublisher::new();
    let quoting = |permanent: bool| {
        move |message: &outbox_runtime::Message| {
            let text = format!("can't send {} anywhere", message.payload);
            Err(match permanent {
                true => PublishError::permanent(text),
                false => PublishError::transient(text),
            })
        }
    };
    publisher.judge(quoting(false));
    let relay = RunningRelay::start_with(&fixture.outbox, &publisher, relay_options());
    place(&fixture, MessageContext::new(), "o-1", SECRET).await;
    relay.health.wait_for(|health| !health.is_healthy()).await;
    let mut said = relay.health.get().to_string();
    publisher.judge(quoting(true));
    eventually(&fixture, "SELECT count(*) FROM outbox_parked_attempt", 1).await;
    relay
        .health
        .wait_for(|health| health.to_string().contains("parked"))
        .await;
    said += &relay.health.get().to_string();
    relay.stop().await;
    said += &fixture
        .texts("SELECT cause FROM outbox_parked_attempt")
        .await
        .concat();
    assert_told_without_secret(&said);
}

async fn no_payload_is_told_by_a_consumer<DB: ShopDb>(fixture: Fixture<DB>) {
    install();
    open_shop(&fixture).await;
    let (billing, postman) = (Billing::default(), Postman::new());
    let app = app(&fixture, &billing).subscriber(postman.clone());
    let running = app.without_relay().start().await.unwrap();
    billing.fail(Failing::QuotingThePayload);
    postman
        .deliver(&message(&placed("o-1", SECRET), "o-1", 1))
        .await
        .unwrap();
    let mut unreadable = message(&placed("o-2", SECRET), "o-2", 1);
    unreadable.payload = format!(r#"{{"order":"o-2","note":["{SECRET}"]}}"#);
    postman.deliver(&unreadable).await.unwrap();
    eventually(&fixture, "SELECT count(*) FROM inbox_parked_attempt", 2).await;
    stop(running).await;
    let causes = fixture
        .texts("SELECT cause FROM inbox_parked_attempt ORDER BY cause")
        .await;
    assert!(
        causes
            .iter()
            .any(|cause| cause == "no paper: for (payload)"),
        "{causes:?}"
    );
    assert_told_without_secret(&causes.concat());
}

/// What was told elsewhere and all spans and events of this program, of all tests so far.
fn assert_told_without_secret(elsewhere: &str) {
    let text = text() + elsewhere;
    assert!(text.contains("(payload)"), "the failure was told");
    for line in text.lines() {
        assert!(!line.contains(SECRET), "{line}");
    }
}
