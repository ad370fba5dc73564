use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outbox_runtime::Message;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::prelude::*;
use outbox_tests::Fixture;
use outbox_tests::bank::{Account, BellRang, id};

use crate::books::{all_arrive, what_arrived_is_what_was_committed};
use crate::dice::dice;
use crate::recorder::{Faults, Recorder};
use crate::relays::{RunningRelay, options};
use crate::writers::{ProofDb, change, open_accounts};

outbox_tests::on_both_databases!(
    nothing_is_marked_on_hope_when_the_broker_dies_midway,
    every_way_to_write_goes_through_the_outbox,
);

/// While it is dying, a broker takes half of each call's messages and never answers.
#[derive(Clone)]
struct Dying {
    recorder: Recorder,
    is_dying: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

#[async_trait]
impl Publisher for Dying {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        if !self.is_dying.load(Ordering::SeqCst) {
            return self.recorder.publish(messages).await;
        }
        let half = messages.len().div_ceil(2);
        self.recorder.publish(&messages[..half]).await;
        self.calls.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

async fn nothing_is_marked_on_hope_when_the_broker_dies_midway<DB: ProofDb>(fixture: Fixture<DB>) {
    let mut dice = dice();
    open_accounts(&fixture.outbox, 20).await;
    for _ in 0..100 {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        change(&mut uow, &mut dice, 20).await.unwrap();
        uow.commit().await.unwrap();
    }
    let recorder = Recorder::new(dice.fork(), Faults::default());
    let broker = Dying {
        recorder: recorder.clone(),
        is_dying: Arc::new(AtomicBool::new(true)),
        calls: Arc::default(),
    };
    let impatient = options()
        .publish_timeout(Duration::from_millis(200))
        .batch_size(20);
    let relay = RunningRelay::start_with(&fixture.outbox, broker.clone(), impatient);
    let dying = async {
        while broker.calls.load(Ordering::SeqCst) < 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), dying).await;
    assert!(in_time.is_ok(), "it is not offered again");
    assert!(recorder.distinct() > 0 && recorder.repetitions() > 0);
    let passed = "SELECT count(*) FROM outbox_message AS message \
        JOIN outbox_shard AS shard ON shard.shard = message.shard \
        WHERE message.id <= shard.position";
    assert_eq!(fixture.number(passed).await, 0);
    let journal = "SELECT count(*) FROM outbox_journal";
    assert_eq!(fixture.number(journal).await, 0);
    assert!(!relay.health.get().is_healthy());

    broker.is_dying.store(false, Ordering::SeqCst);
    all_arrive(&fixture, &recorder).await;
    relay.health.wait_for(|health| health.is_healthy()).await;
    relay.stop().await;
    what_arrived_is_what_was_committed(&fixture, &recorder).await;
}

/// With the broker down, each way to write leaves its row, and nothing has reached anybody.
async fn every_way_to_write_goes_through_the_outbox<DB: ProofDb>(fixture: Fixture<DB>) {
    let recorder = Recorder::new(
        dice(),
        Faults {
            refused: 1000,
            ..Faults::default()
        },
    );
    fixture.run_sql(outbox_tests::bank::SCHEMA).await;
    let relay = RunningRelay::start(&fixture.outbox, recorder.clone());
    let outbox = &fixture.outbox;

    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.events().await, 1, "add");

    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    let mut account = uow.get::<Account>(&id("a")).await.unwrap();
    account.deposit(1);
    uow.save(&mut account).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.events().await, 2, "save");

    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.events().await, 3, "raise");

    let mut transaction = fixture.pool.begin().await.unwrap();
    let joined = outbox.join(&mut *transaction, MessageContext::new()).await;
    let mut uow = joined.unwrap();
    uow.raise(BellRang { times: 2 }).unwrap();
    uow.commit().await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(fixture.events().await, 4, "join");

    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    let mut account = uow.get::<Account>(&id("a")).await.unwrap();
    account.close();
    uow.remove(&mut account).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.events().await, 5, "remove");

    relay.health.wait_for(|health| !health.is_healthy()).await;
    relay.stop().await;
    assert_eq!(recorder.distinct(), 0);
    let relay = RunningRelay::start(outbox, recorder.without_faults());
    all_arrive(&fixture, &recorder).await;
    relay.stop().await;
}
