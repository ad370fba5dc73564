use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::{join, join_all};
use outbox_runtime::prelude::*;
use outbox_runtime::{DomainEvent, Error};
use outbox_tests::bank::{BankDb, Opened, id};
use outbox_tests::{Fixture, RecordingPublisher, RunningRelay, on_both_databases};

on_both_databases!(
    a_cancellation_or_the_relay_wins_and_never_both,
    a_key_that_is_stored_and_scheduled_at_once_is_published_once,
);

fn opened(name: &str) -> Opened {
    Opened {
        account_id: id(name),
    }
}

/// The keys of all messages that were published.
async fn published<DB: BankDb>(fixture: &Fixture<DB>) -> Vec<String> {
    fixture
        .texts("SELECT business_key FROM outbox_message ORDER BY business_key")
        .await
}

async fn until_none_is_scheduled<DB: BankDb>(fixture: &Fixture<DB>) {
    let empty = async {
        while fixture
            .number("SELECT count(*) FROM outbox_scheduled")
            .await
            > 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), empty)
        .await
        .expect("all are moved");
}

async fn a_cancellation_or_the_relay_wins_and_never_both<DB: BankDb>(fixture: Fixture<DB>) {
    const ROUNDS: usize = 60;
    const AT_ONCE: usize = 8;
    let publisher = RecordingPublisher::new();
    let relays = [
        RunningRelay::start(&fixture.outbox, &publisher),
        RunningRelay::start(&fixture.outbox, &publisher),
    ];
    let (mut kept, mut cancelled) = (BTreeSet::new(), 0);
    for round in 0..ROUNDS {
        let names: Vec<_> = (0..AT_ONCE).map(|n| format!("{round:03}-{n}")).collect();
        let due = Duration::from_millis(fastrand::u64(0..8));
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        for name in &names {
            uow.raise_after(opened(name), due).unwrap();
        }
        uow.commit().await.unwrap();
        let tries = join_all(names.iter().map(|name| try_to_cancel(&fixture, name)));
        for (name, was_cancelled) in names.iter().zip(tries.await) {
            if was_cancelled {
                cancelled += 1;
            } else {
                kept.insert(opened(name).business_key().unwrap().unwrap());
            }
        }
    }
    until_none_is_scheduled(&fixture).await;
    publisher.wait_for(kept.len()).await;
    for relay in relays {
        relay.stop().await;
    }
    println!("{cancelled} cancelled, {} published", kept.len());
    assert_eq!(cancelled + kept.len(), ROUNDS * AT_ONCE);
    assert_eq!(
        published(&fixture).await,
        kept.into_iter().collect::<Vec<_>>()
    );
    assert_eq!(publisher.distinct(), ROUNDS * AT_ONCE - cancelled);
}

/// Some of those that would be in time roll back, so the event has to come after all.
async fn try_to_cancel<DB: BankDb>(fixture: &Fixture<DB>, name: &str) -> bool {
    tokio::time::sleep(Duration::from_micros(fastrand::u64(0..10_000))).await;
    let key = opened(name).business_key().unwrap().unwrap();
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let found = uow.cancel_scheduled::<Opened>(&key).await.unwrap();
    if fastrand::u8(0..5) == 0 {
        uow.rollback().await.unwrap();
        return false;
    }
    uow.commit().await.unwrap();
    found
}

async fn a_key_that_is_stored_and_scheduled_at_once_is_published_once<DB: BankDb>(
    fixture: Fixture<DB>,
) {
    const ROUNDS: usize = 200;
    let publisher = RecordingPublisher::new();
    let relay = RunningRelay::start(&fixture.outbox, &publisher);
    let mut both = 0;
    for round in 0..ROUNDS {
        let name = format!("{round:03}");
        let stored = async {
            let mut uow = fixture.outbox.begin(MessageContext::new()).await?;
            uow.raise(opened(&name))?;
            uow.commit().await
        };
        let scheduled = async {
            let mut uow = fixture.outbox.begin(MessageContext::new()).await?;
            uow.raise_after(opened(&name), Duration::from_millis(1))?;
            uow.commit().await
        };
        let (stored, scheduled) = join(stored, scheduled).await;
        for result in [&stored, &scheduled] {
            let fine = matches!(result, Ok(()) | Err(Error::DuplicateEvent { .. }));
            assert!(fine, "{result:?}");
        }
        assert!(stored.is_ok() || scheduled.is_ok());
        both += usize::from(stored.is_ok() && scheduled.is_ok());
    }
    until_none_is_scheduled(&fixture).await;
    publisher.wait_for(ROUNDS).await;
    relay.stop().await;
    println!("{both} of {ROUNDS} committed both at the same moment");
    if DB::NAME == "SQLite" {
        assert_eq!(both, 0, "there is one writer at a time");
    }
    assert_eq!(published(&fixture).await.len(), ROUNDS);
}
