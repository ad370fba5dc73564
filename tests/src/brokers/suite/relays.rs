//! Outboxes behind the broker.

use std::sync::Arc;
use std::time::Duration;

use outbox_runtime::Outbox;
use outbox_runtime::broker::Broker;
use outbox_runtime::relay::Relay;
use sqlx::Sqlite;
use tokio::task::JoinHandle;

use super::delivering::in_order;
use super::{Ground, Member};
use crate::brokers::TestBroker;
use crate::{insert_events, quick, sqlite};

/// The relays crash in turn, and the broker dies in the middle.
pub async fn a_thousand_events_of_one_aggregate_through_two_relays_arrive_in_order<
    B: TestBroker,
>() {
    let Some(mut ground) = Ground::<B>::private() else {
        return;
    };
    let fixture = sqlite().await;
    for from in (1..=1000).step_by(250) {
        fixture
            .run_sql(&insert_events("one", from..from + 250))
            .await;
    }
    for other in 0..20 {
        let statement = insert_events(&format!("other-{other}"), 1..=10);
        fixture.run_sql(&statement).await;
    }
    let broker = ground.broker();
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let mut relays = [0, 1].map(|_| start(&fixture.outbox, &broker));
    let mut messages = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut crashes = 0;
    while messages.len() < 1200 {
        let message = member.take().await;
        if !seen.insert(message.metadata.message_id) {
            continue;
        }
        messages.push(message);
        if messages.len() == 600 {
            let server = ground.server();
            match B::KIND.keeps_confirmed_when_killed() {
                true => server.kill(),
                false => server.stop(),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            server.run().unwrap();
        } else if messages.len() % 150 == 0 {
            let relay = &mut relays[crashes % 2];
            crashes += 1;
            relay.abort();
            *relay = start(&fixture.outbox, &broker);
        }
    }
    assert!(crashes >= 6, "{crashes}");
    let last = in_order(&messages);
    assert_eq!(last["one"], 1000);
    assert_eq!(last.len(), 21);
    let parked = fixture.number("SELECT count(*) FROM outbox_parked WHERE state = 'dead'");
    assert_eq!(parked.await, 0);
    relays.iter().for_each(JoinHandle::abort);
}

fn start(outbox: &Outbox<Sqlite>, broker: &Arc<dyn Broker>) -> JoinHandle<()> {
    let relay = Relay::new(outbox.clone(), Arc::clone(broker))
        .with_options(quick())
        .unwrap();
    tokio::spawn(async move { relay.run_until(std::future::pending()).await })
}
