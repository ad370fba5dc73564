use futures_util::future::join_all;
use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BankDb, SCHEMA, id};
use outbox_tests::{Fixture, on_both_databases};

on_both_databases!(
    retries_make_every_deposit_count,
    commits_in_opposite_order_do_not_deadlock,
    a_row_lock_makes_others_wait,
);

async fn deposit<DB: BankDb>(outbox: &Outbox<DB>, accounts: &[&str]) -> Result<(), Error> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    for account in accounts {
        let mut account = uow.get::<Account>(&id(account)).await?;
        account.deposit(1);
        uow.save(&mut account).await?;
    }
    uow.commit().await
}

async fn open<DB: BankDb>(fixture: &Fixture<DB>, accounts: &[&str]) {
    fixture.run_sql(SCHEMA).await;
    for account in accounts {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        uow.add(&mut Account::silent(account)).await.unwrap();
        uow.commit().await.unwrap();
    }
}

async fn retries_make_every_deposit_count<DB: BankDb>(fixture: Fixture<DB>) {
    open(&fixture, &["a"]).await;
    let tasks = (0..4).map(|_| {
        let outbox = fixture.outbox.clone();
        // Spawned: the futures are Send.
        tokio::spawn(async move {
            let mut done = 0;
            for _ in 0..25 {
                // The helper gives up after ten conflicts in a row; then nothing was written.
                done += i64::from(outbox.retry(|| deposit(&outbox, &["a"])).await.is_ok());
            }
            done
        })
    });
    let done: i64 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    assert!(done > 50, "{done}");
    assert_eq!(fixture.number("SELECT cents FROM account").await, done);
    assert_eq!(fixture.events().await, done);
    let distinct = "SELECT count(DISTINCT sequence) FROM outbox_message";
    assert_eq!(fixture.number(distinct).await, done);
}

async fn commits_in_opposite_order_do_not_deadlock<DB: BankDb>(fixture: Fixture<DB>) {
    open(&fixture, &["a", "b", "c"]).await;
    let orders: [&[&str]; 4] = [
        &["a", "b", "c"],
        &["c", "b", "a"],
        &["b", "a", "c"],
        &["c", "a", "b"],
    ];
    let tasks = orders.map(|accounts| {
        let outbox = fixture.outbox.clone();
        tokio::spawn(async move {
            let mut done = 0;
            for _ in 0..50 {
                match deposit(&outbox, accounts).await {
                    Ok(()) => done += 1,
                    Err(error) => assert!(error.is_version_conflict(), "{error:?}"),
                }
            }
            done
        })
    });
    let done: i64 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(fixture.events().await, 3 * done);
    let sums = "SELECT count(*) FROM account WHERE cents = (SELECT min(cents) FROM account)";
    assert_eq!(fixture.number(sums).await, 3);
    assert_eq!(fixture.number("SELECT min(cents) FROM account").await, done);
}

async fn a_row_lock_makes_others_wait<DB: BankDb>(fixture: Fixture<DB>) {
    open(&fixture, &["a"]).await;
    let tasks = (0..4).map(|_| {
        let outbox = fixture.outbox.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                let mut uow = outbox.begin(MessageContext::new()).await?;
                let mut account = uow.get_for_update::<Account>(&id("a")).await?;
                account.deposit(1);
                uow.save(&mut account).await?;
                uow.commit().await?;
            }
            Ok::<_, Error>(())
        })
    });
    for done in join_all(tasks).await {
        done.unwrap().expect("a locked row has no conflicts");
    }
    assert_eq!(fixture.number("SELECT cents FROM account").await, 40);
}
