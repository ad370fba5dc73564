use std::time::{Duration, Instant};

use outbox_runtime::Error;
use outbox_runtime::app::{App, RunningApp};
use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::InProcessBroker;
use outbox_runtime::inbox::ConsumerOptions;
use outbox_runtime::prelude::*;
use outbox_tests::Fixture;
use outbox_tests::bank::{AccountId, Deposited};

use crate::relays;
use crate::writers::{Load, ProofDb};

/// A deposit had its effect on the mirror.
#[domain_event(version = 1)]
pub(crate) struct Mirrored {
    account_id: AccountId,
}

/// What another context makes of an account's events.
#[aggregate(table = "mirror", events(Mirrored))]
pub(crate) struct Mirror {
    id: AccountId,
    effects: i64,
    last_sequence: i64,
    misplaced: i64,
    root: AggregateRoot,
}

/// What a third context makes of the mirror's events.
#[aggregate(table = "audit")]
pub(crate) struct Audit {
    id: AccountId,
    effects: i64,
    last_sequence: i64,
    misplaced: i64,
    root: AggregateRoot,
}

const SCHEMA: &str = "
    CREATE TABLE mirror (id TEXT PRIMARY KEY, effects BIGINT NOT NULL,
        last_sequence BIGINT NOT NULL, misplaced BIGINT NOT NULL, version BIGINT NOT NULL);
    CREATE TABLE audit (id TEXT PRIMARY KEY, effects BIGINT NOT NULL,
        last_sequence BIGINT NOT NULL, misplaced BIGINT NOT NULL, version BIGINT NOT NULL);";

/// A database that holds all three contexts.
pub(crate) trait ShopDb: ProofDb + Stores<Mirror> + Stores<Audit> {}

impl<DB: ProofDb + Stores<Mirror> + Stores<Audit>> ShopDb for DB {}

#[idempotent_handler(consumer = "shop.mirror", key = "{message_id}")]
async fn mirror<DB: ShopDb>(
    event: Envelope<Deposited>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), Error> {
    let sequence = event.metadata.aggregate.as_ref().unwrap().sequence;
    let found = uow.find::<Mirror>(&event.account_id).await?;
    let is_new = found.is_none();
    let mut mirror = found.unwrap_or_else(|| Mirror {
        id: event.account_id.clone(),
        effects: 0,
        // The first event opened the account, and is none of ours.
        last_sequence: 1,
        misplaced: 0,
        root: AggregateRoot::new(),
    });
    mirror.effects += event.cents;
    mirror.misplaced += i64::from(sequence != mirror.last_sequence + 1);
    mirror.last_sequence = sequence;
    let account_id = event.account_id.clone();
    mirror.raise(Mirrored { account_id });
    if is_new {
        uow.add(&mut mirror).await
    } else {
        uow.save(&mut mirror).await
    }
}

#[idempotent_handler(consumer = "shop.audit", key = "{message_id}")]
async fn audit<DB: ShopDb>(
    event: Envelope<Mirrored>,
    uow: &mut UnitOfWork<'_, DB>,
) -> Result<(), Error> {
    let sequence = event.metadata.aggregate.as_ref().unwrap().sequence;
    let found = uow.find::<Audit>(&event.account_id).await?;
    let is_new = found.is_none();
    let mut audit = found.unwrap_or_else(|| Audit {
        id: event.account_id.clone(),
        effects: 0,
        last_sequence: 0,
        misplaced: 0,
        root: AggregateRoot::new(),
    });
    audit.effects += 1;
    audit.misplaced += i64::from(sequence != audit.last_sequence + 1);
    audit.last_sequence = sequence;
    if is_new {
        uow.add(&mut audit).await
    } else {
        uow.save(&mut audit).await
    }
}

/// The load of a shop's writers; they never come to an end by themselves.
pub(crate) const LOAD: Load = Load {
    events: u64::MAX,
    writers: 4,
    accounts: 40,
    wait: 40_000,
    open_for: Duration::from_millis(200),
    rest: Duration::from_millis(300),
    may_fail: false,
};

/// What a killed relay's successor waits for.
const LEASE: Duration = Duration::from_millis(500);
/// Less than what is left of the lease at any time: so what was confirmed by then counts.
const CONFIRM_WITHIN: Duration = Duration::from_millis(200);
/// So long without a single new effect means that something is stuck.
const STANDSTILL: Duration = Duration::from_secs(60);

/// Creates the tables of the handlers.
pub(crate) async fn create_tables<DB: ShopDb>(outbox: &Outbox<DB>) {
    DB::run_sql(outbox.pool(), SCHEMA).await;
}

/// A relay, a broker and the handlers.
pub(crate) async fn open<DB: ShopDb>(outbox: &Outbox<DB>) -> RunningApp {
    open_with(outbox, broker()).await
}

pub(crate) fn broker() -> InProcessBroker {
    InProcessBroker::new().confirm_within(CONFIRM_WITHIN)
}

pub(crate) async fn open_with<DB: ShopDb>(
    outbox: &Outbox<DB>,
    broker: InProcessBroker,
) -> RunningApp {
    let backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(200));
    App::new(outbox.clone())
        .broker(broker)
        .relay_options(relays::options().lease(LEASE))
        .consumer_options(ConsumerOptions::new().backoff(backoff))
        .select_consumers(|name| name.starts_with("shop."))
        .start()
        .await
        .unwrap()
}

/// How many deposits are committed, and how many effects they had on the mirror and the audit.
pub(crate) async fn effects<DB: ShopDb>(fixture: &Fixture<DB>) -> (i64, i64, i64) {
    let deposits = "SELECT count(*) FROM outbox_message WHERE event_type = 'account.deposited'";
    let sum = |table| format!("SELECT CAST(coalesce(sum(effects), 0) AS BIGINT) FROM {table}");
    (
        fixture.number(deposits).await,
        fixture.number(&sum("mirror")).await,
        fixture.number(&sum("audit")).await,
    )
}

/// Waits until all effects are there, for as long as more of them come.
///
/// How fast they come is the disk's matter: a SQLite file takes a sync per effect.
pub(crate) async fn all_have_effect<DB: ShopDb>(fixture: &Fixture<DB>) {
    let mut seen = effects(fixture).await;
    let mut standing = Instant::now();
    while seen.1 < seen.0 || seen.2 < seen.0 {
        assert!(standing.elapsed() < STANDSTILL, "nothing moves at {seen:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = effects(fixture).await;
        if now != seen {
            (seen, standing) = (now, Instant::now());
        }
    }
}

/// Each deposit had one effect on the mirror and one on the audit, in order.
pub(crate) async fn books_balance<DB: ShopDb>(fixture: &Fixture<DB>) {
    let (deposits, mirrored, audited) = effects(fixture).await;
    assert_eq!((mirrored, audited), (deposits, deposits));
    let number = |sql: &'static str| fixture.number(sql);
    let cents = number("SELECT CAST(sum(cents) AS BIGINT) FROM account").await;
    assert_eq!(cents, deposits, "changes of accounts and their events");
    let versions = number(
        "SELECT CAST((SELECT sum(version) FROM account) + (SELECT sum(version) FROM mirror) AS BIGINT)",
    );
    let events = fixture.events().await;
    assert_eq!(versions.await, events, "versions and events");
    let handled = number("SELECT count(*) FROM inbox_message").await;
    assert_eq!(handled, 2 * deposits, "rows of the inbox");
    let misplaced = number(
        "SELECT CAST((SELECT sum(misplaced) FROM mirror) + (SELECT sum(misplaced) FROM audit) AS BIGINT)",
    );
    assert_eq!(misplaced.await, 0, "effects out of order");
}
