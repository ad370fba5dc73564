//! Listings of the chapter on the unit of work.

use std::time::Duration;

use book_listings::{SqliteFile, postgres};
use outbox_runtime::prelude::*;
use outbox_runtime::{Aggregate, Error};
use sqlx::{Sqlite, SqlitePool};

typed_id! { pub struct AccountId(i64); }

#[domain_event(version = 1)]
pub struct MoneyMoved {
    pub account_id: AccountId,
    pub cents: i64,
}

#[domain_event(version = 1)]
pub struct DayClosed {
    pub day: String,
}

#[aggregate(table = "accounts", events(MoneyMoved))]
pub struct Account {
    id: AccountId,
    balance_cents: i64,
    root: AggregateRoot,
}

#[derive(Debug, thiserror::Error)]
#[error("the account holds too little")]
pub struct TooLittle;

impl Account {
    pub fn open(id: i64, balance_cents: i64) -> Self {
        Self {
            id: AccountId::from(id),
            balance_cents,
            root: AggregateRoot::new(),
        }
    }

    pub fn change(&mut self, cents: i64) -> Result<(), TooLittle> {
        if self.balance_cents + cents < 0 {
            return Err(TooLittle);
        }
        self.balance_cents += cents;
        self.raise(MoneyMoved {
            account_id: self.id.clone(),
            cents,
        });
        Ok(())
    }
}

// ANCHOR: transfer
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    TooLittle(#[from] TooLittle),
}

async fn transfer<DB: Stores<Account>>(
    outbox: &Outbox<DB>,
    from: i64,
    to: i64,
    cents: i64,
) -> Result<(), TransferError> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut from = uow.get::<Account>(&AccountId::from(from)).await?;
    let mut to = uow.get::<Account>(&AccountId::from(to)).await?;
    from.change(-cents)?; // leaving here drops the unit of work: nothing happened
    to.change(cents)?;
    uow.save(&mut from).await?;
    uow.save(&mut to).await?;
    uow.commit().await?;
    Ok(())
}
// ANCHOR_END: transfer

// ANCHOR: retry
async fn transfer_patiently<DB: Stores<Account>>(
    outbox: &Outbox<DB>,
    from: i64,
    to: i64,
    cents: i64,
) -> Result<(), TransferError> {
    outbox.retry(|| transfer(outbox, from, to, cents)).await
}
// ANCHOR_END: retry

const TABLES: &str = "
    CREATE TABLE accounts (id bigint PRIMARY KEY, balance_cents bigint NOT NULL, version bigint NOT NULL);
    CREATE TABLE audit (note text NOT NULL);
";

async fn two_accounts<DB: Stores<Account>>(outbox: &Outbox<DB>) -> Result<(), Error> {
    outbox.migrate().await?;
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.add(&mut Account::open(1, 10_000)).await?;
    uow.add(&mut Account::open(2, 0)).await?;
    uow.commit().await
}

async fn balance<DB: Stores<Account>>(outbox: &Outbox<DB>, id: i64) -> Result<i64, Error> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    Ok(uow
        .get::<Account>(&AccountId::from(id))
        .await?
        .balance_cents)
}

async fn transfers_balance<DB: Stores<Account>>(outbox: Outbox<DB>) -> Result<(), TransferError> {
    two_accounts(&outbox).await?;
    assert!(matches!(
        transfer(&outbox, 2, 1, 1).await,
        Err(TransferError::TooLittle(_))
    ));
    // Both begin from the same versions; the slower one meets a conflict and repeats.
    let (one, two) = tokio::join!(
        transfer_patiently(&outbox, 1, 2, 4_000),
        transfer_patiently(&outbox, 1, 2, 500)
    );
    one?;
    two?;
    assert_eq!(balance(&outbox, 1).await?, 5_500);
    assert_eq!(balance(&outbox, 2).await?, 4_500);
    Ok(())
}

#[tokio::test]
async fn transfers_balance_on_sqlite() -> Result<(), TransferError> {
    let file = SqliteFile::with_tables(TABLES).await;
    transfers_balance(Outbox::new("bank", file.pool.clone())).await
}

#[tokio::test]
async fn transfers_balance_on_postgres() -> Result<(), TransferError> {
    let Some(pool) = postgres("transfer", TABLES).await else {
        return Ok(());
    };
    transfers_balance(Outbox::new("bank", pool)).await
}

async fn bank() -> Result<(Outbox<Sqlite>, SqliteFile), Error> {
    let file = SqliteFile::with_tables(TABLES).await;
    let outbox = Outbox::new("bank", file.pool.clone());
    two_accounts(&outbox).await?;
    Ok((outbox, file))
}

async fn count(pool: &SqlitePool, what: &'static str) -> i64 {
    sqlx::query_scalar(what)
        .fetch_one(pool)
        .await
        .expect("a count")
}

#[tokio::test]
async fn own_sql_shares_the_transaction() -> Result<(), Box<dyn std::error::Error>> {
    let (outbox, file) = bank().await?;
    // ANCHOR: own_sql
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut account = uow.get::<Account>(&AccountId::from(1)).await?;
    account.change(-500)?;
    uow.save(&mut account).await?;
    sqlx::query("INSERT INTO audit (note) VALUES (?)")
        .bind("500 cents went out")
        .execute(&mut *uow.connection().await?)
        .await?;
    uow.commit().await?; // the account, the event and the note
    // ANCHOR_END: own_sql
    assert_eq!(count(&file.pool, "SELECT count(*) FROM audit").await, 1);
    Ok(())
}

#[tokio::test]
async fn a_savepoint_takes_back_a_part() -> Result<(), Box<dyn std::error::Error>> {
    let (outbox, file) = bank().await?;
    // ANCHOR: savepoint
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut first = uow.get::<Account>(&AccountId::from(1)).await?;
    first.change(-100)?;
    uow.save(&mut first).await?;

    let savepoint = uow.savepoint().await?;
    let mut second = uow.get::<Account>(&AccountId::from(2)).await?;
    second.change(100)?;
    uow.save(&mut second).await?;
    uow.rollback_to(savepoint).await?; // the second account and its event are as before

    uow.commit().await?;
    // ANCHOR_END: savepoint
    assert_eq!(
        count(&file.pool, "SELECT count(*) FROM outbox_message").await,
        1
    );
    assert_eq!(
        (balance(&outbox, 1).await?, balance(&outbox, 2).await?),
        (9_900, 0)
    );
    Ok(())
}

#[tokio::test]
async fn an_event_needs_no_aggregate() -> Result<(), Error> {
    let (outbox, file) = bank().await?;
    // ANCHOR: raise
    let mut uow = outbox.begin(MessageContext::new()).await?;
    uow.raise(DayClosed {
        day: "2026-02-24".to_owned(),
    })?;
    uow.commit().await?;
    // ANCHOR_END: raise
    assert_eq!(
        count(&file.pool, "SELECT count(*) FROM outbox_message").await,
        1
    );
    Ok(())
}

#[tokio::test]
async fn a_unit_of_work_joins_a_transaction() -> Result<(), Box<dyn std::error::Error>> {
    let (outbox, file) = bank().await?;
    let pool = &file.pool;
    // ANCHOR: join
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO audit (note) VALUES ('from old code')")
        .execute(&mut *transaction)
        .await?;

    let mut uow = outbox.join(&mut transaction, MessageContext::new()).await?;
    let mut account = uow.get::<Account>(&AccountId::from(1)).await?;
    account.change(-500)?;
    uow.save(&mut account).await?;
    uow.commit().await?; // writes; the transaction is still yours

    transaction.commit().await?;
    outbox.wake(); // the relay of this process need not wait for its next poll
    // ANCHOR_END: join
    assert_eq!(count(pool, "SELECT count(*) FROM outbox_message").await, 1);
    Ok(())
}

#[tokio::test]
async fn an_unsaved_event_is_never_lost() -> Result<(), Box<dyn std::error::Error>> {
    let (outbox, _file) = bank().await?;
    // ANCHOR: unsaved
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let mut account = uow.get::<Account>(&AccountId::from(1)).await?;
    account.change(-500)?;
    let answer = uow.commit().await; // `save` was forgotten
    assert!(matches!(answer, Err(Error::UnsavedEvents { count: 1, .. })));
    // ANCHOR_END: unsaved
    Ok(())
}

#[domain_event(version = 1, key = "{account_id}")]
pub struct ReminderDue {
    pub account_id: AccountId,
}

#[tokio::test]
async fn an_event_is_scheduled_and_cancelled() -> Result<(), Error> {
    let (outbox, file) = bank().await?;
    // ANCHOR: schedule
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let account_id = AccountId::from(1);
    uow.raise_after(
        ReminderDue { account_id },
        Duration::from_secs(3 * 24 * 3600),
    )?;
    uow.commit().await?;
    // ANCHOR_END: schedule
    let rows = "SELECT count(*) FROM outbox_scheduled";
    assert_eq!(count(&file.pool, rows).await, 1);
    // ANCHOR: cancel
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let in_time = uow.cancel_scheduled::<ReminderDue>("1").await?;
    uow.commit().await?;
    // ANCHOR_END: cancel
    assert!(in_time);
    assert_eq!(count(&file.pool, rows).await, 0);
    Ok(())
}

#[tokio::test]
async fn many_are_loaded_at_once() -> Result<(), Error> {
    let (outbox, _file) = bank().await?;
    // ANCHOR: loads
    let (first, second) = (AccountId::from(1), AccountId::from(2));
    let mut uow = outbox.begin(MessageContext::new()).await?;
    let account = uow.get::<Account>(&first).await?; // must exist
    let missing = uow.find::<Account>(&AccountId::from(3)).await?; // may be missing
    let both = uow.get_many::<Account>(&[first.clone(), second]).await?; // one query
    let locked = uow.get_for_update::<Account>(&first).await?; // opens the transaction
    // ANCHOR_END: loads
    assert!(missing.is_none());
    assert_eq!(both.len(), 2);
    assert_eq!(account.root().version(), locked.root().version());
    Ok(())
}

#[tokio::test]
async fn a_row_lock_makes_others_wait_on_postgres() -> Result<(), TransferError> {
    let Some(pool) = postgres("lock", TABLES).await else {
        return Ok(());
    };
    let outbox = Outbox::new("bank", pool);
    two_accounts(&outbox).await?;
    let spend = async || {
        let mut uow = outbox.begin(MessageContext::new()).await?;
        let mut account = uow.get_for_update::<Account>(&AccountId::from(1)).await?;
        account.change(-1)?;
        uow.save(&mut account).await?;
        uow.commit().await.map_err(TransferError::from)
    };
    // No retry: with the lock there is no conflict.
    let (one, two, three) = tokio::join!(spend(), spend(), spend());
    one.and(two).and(three)?;
    assert_eq!(balance(&outbox, 1).await?, 9_997);
    Ok(())
}

#[tokio::test]
async fn a_context_is_inherited_by_events() -> Result<(), Error> {
    let (outbox, file) = bank().await?;
    // ANCHOR: context
    let context = MessageContext::new()
        .correlation_id("transfer-2026-000123")
        .causation_id("request 7f3a")
        .traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .header("tenant", "blue");
    let mut uow = outbox.begin(context).await?;
    // ANCHOR_END: context
    uow.raise(DayClosed {
        day: "2026-02-24".to_owned(),
    })?;
    uow.commit().await?;
    let (correlation, headers): (String, String) =
        sqlx::query_as("SELECT correlation_id, headers FROM outbox_message")
            .fetch_one(&file.pool)
            .await
            .expect("a row");
    assert_eq!(
        (correlation.as_str(), headers.as_str()),
        ("transfer-2026-000123", r#"{"tenant":"blue"}"#)
    );
    Ok(())
}
