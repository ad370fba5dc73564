use outbox_tests::{RoundTrips, postgres};
use sqlx::Postgres;
use sqlx::postgres::PgPoolOptions;

use super::*;

/// Changes a row that messages of several lanes want, in the order in which the message names them.
#[idempotent_handler(consumer = "batch.rows", key = "{message_id}")]
async fn rows(
    event: Envelope<Paid>,
    uow: &mut UnitOfWork<'_, Postgres>,
) -> Result<(), sqlx::Error> {
    let connection = uow.connection().await.map_err(sqlx::Error::protocol)?;
    let sql = "UPDATE rows SET n = n + 1 WHERE id = $1";
    sqlx::query(sql)
        .bind(event.cents)
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes no notice of a statement that fails.
#[idempotent_handler(consumer = "batch.careless", key = "{message_id}")]
async fn careless(
    event: Envelope<Paid>,
    uow: &mut UnitOfWork<'_, Postgres>,
) -> Result<(), outbox_runtime::Error> {
    let connection = uow.connection().await?;
    let sql = if event.cents < 0 {
        "SELECT 1 / 0"
    } else {
        "UPDATE rows SET n = n + 1 WHERE id = 0"
    };
    let _ = sqlx::query(sql).execute(connection).await;
    Ok(())
}

/// Of two messages the first swallows a failed statement and begins a savepoint, which fails and has
/// sqlx take all of the transaction back.
#[idempotent_handler(consumer = "batch.savepoint", key = "{message_id}")]
async fn savepoint(
    event: Envelope<Paid>,
    uow: &mut UnitOfWork<'_, Postgres>,
) -> Result<(), outbox_runtime::Error> {
    let connection = uow.connection().await?;
    if event.cents < 0 {
        let _ = sqlx::query("SELECT 1 / 0").execute(&mut *connection).await;
        let _ = sqlx::Connection::begin(connection).await;
        return Ok(());
    }
    let sql = "UPDATE rows SET n = n + 1 WHERE id = 0";
    let _ = sqlx::query(sql).execute(connection).await;
    Ok(())
}

async fn open_rows(fixture: &Fixture<Postgres>) {
    fixture
        .run_sql(
            "CREATE TABLE rows (id bigint PRIMARY KEY, n bigint NOT NULL); \
             INSERT INTO rows SELECT n, 0 FROM generate_series(0, 9) AS n",
        )
        .await;
}

async fn sum(fixture: &Fixture<Postgres>) -> i64 {
    fixture.number("SELECT sum(n)::bigint FROM rows").await
}

/// Messages of lanes of their own about the rows of these numbers.
fn about(rows: impl Iterator<Item = i64>) -> Vec<Message> {
    rows.enumerate()
        .map(|(n, row)| message(&paid("a", row), &format!("lane-{n}"), 1))
        .collect()
}

/// The round trips that the consumer needs for a hundred messages that come together.
async fn trips(fixture: &Fixture<Postgres>, batch: usize, consumer: &'static str) -> u64 {
    let trips = RoundTrips::count(fixture).await;
    let mut states = States::default();
    states.insert(Ledger::default());
    let outbox = Outbox::builder("test", trips.pool.clone());
    let outbox = outbox.notify(false).build().unwrap();
    let options = batches(batch).poll_interval(Duration::from_secs(3_600));
    let postman = Postman::new();
    let messages = about((0..100).map(|n| n % 10));
    // They are there before it begins, so it finds as many as it may take.
    let answers: Vec<_> = messages.iter().map(|one| postman.deliver(one)).collect();
    let consuming = Consumer::new(outbox, postman.clone())
        .with_states(states)
        .with_options(options)
        .select_consumers(move |name| name == consumer);
    let running = Running::start(consuming);
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    running.stop().await.unwrap();
    trips.take()
}

/// Besides what is told here there are some round trips to prepare the statements, to look for parked
/// messages at the start, and to begin anew when the pool has had its connection back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_costs_few_round_trips_and_in_a_batch_only_its_own() {
    for (batch, consumer, least) in [
        // The claim, the UPDATE, and the commit with the beginning of the next transaction.
        (1, "batch.rows", 3 * 100),
        // The UPDATE. There is a claim and a commit for fifty.
        (50, "batch.rows", 100),
        // The claim, the load, the write with its event, the commit.
        (1, SUM, 4 * 100),
        // The load and the write.
        (50, SUM, 2 * 100),
    ] {
        let Some(fixture) = postgres().await else {
            return;
        };
        open_rows(&fixture).await;
        let _ledger = Ledger::open(&fixture).await;
        let trips = trips(&fixture, batch, consumer).await;
        assert!(
            (least..least + 50).contains(&trips),
            "{consumer} in {batch}: {trips}"
        );
        assert_eq!(consumer_support::inbox(&fixture).await, 100);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swallowed_failure_takes_back_the_batch_and_parks_one() {
    costs_its_own_message_only("batch.careless").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_a_savepoint_took_back_has_no_effect_outside_of_it() {
    costs_its_own_message_only("batch.savepoint").await;
}

/// One of twenty messages breaks the transaction, and says that it went well.
async fn costs_its_own_message_only(consumer: &'static str) {
    let Some(fixture) = postgres().await else {
        return;
    };
    open_rows(&fixture).await;
    let ledger = Ledger::default();
    let messages = about((0..20).map(|n| if n == 11 { -1 } else { n }));
    let options = batches(20).retry(RetryPolicy::new().max_attempts(1));
    let consumers: &'static [&'static str] = vec![consumer].leak();
    let (postman, running) = ledger.consume(&fixture, options, consumers);
    all_acknowledged(&postman, &messages).await;
    running.wait_for_handled(19).await;
    eventually(|| running.consumer.counts().dead == 1).await;
    let counts = running.consumer.counts();
    running.stop().await.unwrap();
    assert!(counts.batches_rolled_back >= 1, "{counts:?}");
    assert_eq!(sum(&fixture).await, 19);
    assert_eq!(consumer_support::inbox(&fixture).await, 19);
}

/// Two instances whose batches take the same rows in opposite orders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_lock_each_others_rows_get_on() {
    let Some(fixture) = postgres().await else {
        return;
    };
    open_rows(&fixture).await;
    let ledger = Ledger::default();
    let options = options().concurrency(2).batch(10);
    let instances = [(); 2].map(|()| ledger.consume(&fixture, options.clone(), &["batch.rows"]));
    let up = about((0..200).map(|n| n % 10));
    let down = about((0..200).map(|n| 9 - n % 10));
    let [(first, one), (second, other)] = instances;
    tokio::join!(
        all_acknowledged(&first, &up),
        all_acknowledged(&second, &down)
    );
    eventually(|| one.consumer.counts().handled + other.consumer.counts().handled == 400).await;
    one.stop().await.unwrap();
    other.stop().await.unwrap();
    assert_eq!(sum(&fixture).await, 400);
    assert_eq!(consumer_support::parked(&fixture).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_killed_in_batches_cost_no_effect_and_repeat_none() {
    let Some(fixture) = postgres().await else {
        return;
    };
    let ledger = Ledger::open(&fixture).await;
    let options = options().concurrency(4).batch(16);
    let (postman, running) = ledger.consume(&fixture, options, &[SUM, COUNT]);
    let killer = PgPoolOptions::new()
        .max_connections(1)
        .connect(&fixture.url)
        .await
        .unwrap();
    let killing = tokio::spawn(async move {
        for _ in 0..30 {
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                        WHERE datname = current_database() AND pid <> pg_backend_pid()";
            sqlx::query(kill).execute(&killer).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let messages = messages(40, 20);
    let mut answers = Vec::new();
    for some in messages.chunks(20) {
        answers.extend(some.iter().map(|one| postman.deliver(one)));
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    killing.await.unwrap();
    running.wait_for_handled(1_600).await;
    let counts = running.consumer.counts();
    running.stop().await.unwrap();
    assert_eq!(counts.duplicates, 0, "{counts:?}");
    assert!(
        counts.batches_rolled_back > 0,
        "nothing was killed midway: {counts:?}"
    );
    ledger.balances(&fixture, &messages, 2).await;
}
