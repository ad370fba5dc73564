//! Statements a unit of work costs on PostgreSQL, for each shape of use. A number that grows here
//! is a round trip that every user pays.

use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BellRang, SCHEMA, id};
use outbox_tests::{Fixture, RoundTrips};
use sqlx::Postgres;

struct Counted {
    outbox: Outbox<Postgres>,
    trips: RoundTrips,
    _fixture: Fixture<Postgres>,
}

impl Counted {
    async fn new() -> Option<Self> {
        let fixture = outbox_tests::postgres().await?;
        fixture.run_sql(SCHEMA).await;
        let trips = RoundTrips::count(&fixture).await;
        Some(Self {
            // A notice is sent later and for several commits: nobody can say into which count.
            outbox: Outbox::builder("test", trips.pool.clone())
                .notify(false)
                .build()
                .unwrap(),
            trips,
            _fixture: fixture,
        })
    }

    async fn begin(&self) -> UnitOfWork<'static, Postgres> {
        self.outbox.begin(MessageContext::new()).await.unwrap()
    }

    async fn add(&self, name: &str) {
        let mut uow = self.begin().await;
        uow.add(&mut Account::open(name)).await.unwrap();
        uow.commit().await.unwrap();
    }

    async fn change(&self, names: &[&str], events: usize) {
        let mut uow = self.begin().await;
        for name in names {
            let mut account = uow.get::<Account>(&id(name)).await.unwrap();
            for _ in 0..events {
                account.deposit(1);
            }
            uow.save(&mut account).await.unwrap();
        }
        uow.commit().await.unwrap();
    }
}

/// A statement is prepared at its first use (one more round trip), so each shape runs once before
/// it is counted.
#[tokio::test]
async fn each_shape_costs_what_it_should() {
    let Some(bank) = Counted::new().await else {
        return;
    };
    for name in ["a", "b", "c"] {
        bank.add(name).await;
    }

    bank.trips.take();
    bank.add("d").await;
    assert_eq!(bank.trips.take(), 1, "adding an aggregate with an event");

    bank.change(&["a"], 1).await;
    bank.trips.take();
    bank.change(&["a"], 1).await;
    assert_eq!(
        bank.trips.take(),
        2,
        "loading one aggregate and saving it with an event"
    );

    bank.change(&["a"], 20).await;
    bank.trips.take();
    bank.change(&["a"], 20).await;
    assert_eq!(bank.trips.take(), 2, "twenty events are still one insert");

    bank.change(&["b"], 0).await;
    bank.trips.take();
    bank.change(&["b"], 0).await;
    assert_eq!(bank.trips.take(), 2, "a change without an event");

    bank.change(&["a", "b", "c"], 1).await;
    bank.trips.take();
    bank.change(&["a", "b", "c"], 1).await;
    assert_eq!(bank.trips.take(), 4, "three loads and one commit");

    for _ in 0..2 {
        bank.trips.take();
        let mut uow = bank.begin().await;
        uow.raise(BellRang { times: 1 }).unwrap();
        uow.commit().await.unwrap();
    }
    assert_eq!(bank.trips.take(), 1, "an event without an aggregate");

    for _ in 0..2 {
        bank.trips.take();
        let mut uow = bank.begin().await;
        let mut all = uow
            .get_many::<Account>(&[id("a"), id("b"), id("c")])
            .await
            .unwrap();
        for account in &mut all {
            account.deposit(1);
            uow.save(account).await.unwrap();
        }
        uow.commit().await.unwrap();
    }
    assert_eq!(bank.trips.take(), 2, "several aggregates in one load");

    for _ in 0..2 {
        bank.trips.take();
        let mut uow = bank.begin().await;
        let mut account = uow.get_for_update::<Account>(&id("a")).await.unwrap();
        account.deposit(1);
        uow.save(&mut account).await.unwrap();
        uow.commit().await.unwrap();
    }
    assert_eq!(
        bank.trips.take(),
        4,
        "BEGIN, a locked load, one write, COMMIT"
    );

    for _ in 0..2 {
        bank.trips.take();
        let mut uow = bank.begin().await;
        sqlx::query("SELECT 1")
            .execute(&mut *uow.connection().await.unwrap())
            .await
            .unwrap();
        uow.raise(BellRang { times: 1 }).unwrap();
        uow.commit().await.unwrap();
    }
    assert_eq!(
        bank.trips.take(),
        5,
        "BEGIN, SQL of the user's, a look whether the transaction still stands, the events, COMMIT"
    );

    let uow = bank.begin().await;
    uow.commit().await.unwrap();
    assert_eq!(bank.trips.take(), 0, "nothing to do");
}

/// PostgreSQL turns the COMMIT of a failed transaction into a rollback and says nothing.
#[tokio::test]
async fn a_failed_statement_that_nobody_looked_at_fails_the_commit() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    fixture.run_sql("CREATE TABLE note (text TEXT)").await;
    for with_event in [false, true] {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        let connection = uow.connection().await.unwrap();
        sqlx::query("INSERT INTO note VALUES ('x')")
            .execute(&mut *connection)
            .await
            .unwrap();
        let ignored = sqlx::query("SELECT 1/0").execute(&mut *connection).await;
        assert!(ignored.is_err());
        if with_event {
            uow.raise(BellRang { times: 1 }).unwrap();
        }
        uow.commit().await.expect_err("the note would be lost");
    }
    assert_eq!(fixture.number("SELECT count(*) FROM note").await, 0);
    assert_eq!(fixture.events().await, 0);
}
