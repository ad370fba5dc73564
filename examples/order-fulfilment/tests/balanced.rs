//! Whole runs of the program, whose books must balance.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use serde_json::Value;
use support::{PostgresDatabase, SqliteFile, balanced, program};

#[test]
fn the_sample_balances_on_sqlite_and_again_without_placing_twice() {
    let file = SqliteFile::new();
    the_sample_balances_twice(&file.url());
}

#[tokio::test]
async fn the_sample_balances_on_postgres_and_again_without_placing_twice() {
    if let Some(database) = PostgresDatabase::new().await {
        the_sample_balances_twice(&database.url());
        database.drop().await;
    }
}

fn the_sample_balances_twice(url: &str) {
    let first = balanced(&mut program(url));
    assert_eq!(first["this_run"]["orders_placed"], 500);
    assert_eq!(first["this_run"]["relay_restarts"], 1);
    assert!(
        first["this_run"]["messages_repeated_on_purpose"]
            .as_u64()
            .unwrap()
            > 100
    );
    assert!(first["this_run"]["duplicates_absorbed"].as_u64().unwrap() > 100);
    let totals = &first["totals"];
    // Both ways of failing, and so both compensations, are part of the sample.
    for figure in [
        "stock_rejected",
        "payments_declined",
        "orders_confirmed",
        "orders_cancelled",
    ] {
        assert!(totals[figure].as_u64().unwrap() > 5, "{figure}: {totals:#}");
    }

    let second = balanced(&mut program(url));
    assert_eq!(second["this_run"]["orders_placed"], 0);
    assert_eq!(second["this_run"]["orders_already_placed"], 500);
    assert_eq!(&second["totals"], totals);
}

#[test]
fn two_runs_at_once_share_the_work_on_sqlite() {
    let file = SqliteFile::new();
    two_runs_at_once_share_the_work(&file.url());
}

#[tokio::test]
async fn two_runs_at_once_share_the_work_on_postgres() {
    if let Some(database) = PostgresDatabase::new().await {
        two_runs_at_once_share_the_work(&database.url());
        database.drop().await;
    }
}

fn two_runs_at_once_share_the_work(url: &str) {
    let runs = std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| balanced(&mut program(url))));
        runs.map(|run| run.join().unwrap())
    });
    let placed = runs.map(|books| books["this_run"]["orders_placed"].as_u64().unwrap());
    assert_eq!(placed.iter().sum::<u64>(), 500);
}

#[test]
fn every_message_twice_and_a_relay_that_dies_often_change_nothing() {
    let file = SqliteFile::new();
    let books = balanced(program(&file.url()).args(["--duplicates", "1", "--relay-restarts", "5"]));
    assert_eq!(books["this_run"]["relay_restarts"], 5);
    assert_eq!(books["this_run"]["orders_placed"], 500);
}

#[test]
fn bad_lines_are_reported_and_the_rest_goes_on() {
    let file = SqliteFile::new();
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("orders.csv");
    let text = "\u{feff}order_id,customer_id,sku,quantity,unit_price_cents\r\n\
        o1,c1,s1,2,100\r\n\
        o2,c1,s1,two,100\r\n\
        o1,c1,s1,2,100\r\n\
        o3,c1,s1,1,100\r\n";
    std::fs::write(&csv, text).unwrap();
    let output = program(&file.url())
        .arg("--orders")
        .arg(&csv)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(said.contains("line 3, column quantity: \"two\""), "{said}");
    assert!(
        said.contains("line 4, column order_id: the order o1 stands on line 2"),
        "{said}"
    );

    let books = support::books(&output);
    assert_eq!(books["balanced"], true, "{books:#}");
    assert_eq!(books["this_run"]["orders_read"], 4);
    assert_eq!(books["this_run"]["orders_refused"], 2);
    assert_eq!(books["this_run"]["orders_placed"], 2);
    assert_eq!(books["refused_lines"][0]["line"], 3);
    assert_eq!(books["refused_lines"][0]["column"], "quantity");
}

#[test]
fn an_order_that_contradicts_an_earlier_run_is_refused() {
    let file = SqliteFile::new();
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("orders.csv");
    let run = |lines: &str| -> Value {
        std::fs::write(
            &csv,
            format!("order_id,customer_id,sku,quantity,unit_price_cents\n{lines}"),
        )
        .unwrap();
        balanced(program(&file.url()).arg("--orders").arg(&csv))
    };
    run("o1,c1,s1,2,100\n");
    let books = run("o1,c1,s1,3,100\no2,c1,s1,1,100\n");
    assert_eq!(books["this_run"]["orders_refused"], 1);
    assert_eq!(books["this_run"]["orders_placed"], 1);
    assert_eq!(books["totals"]["captured_cents"], 300);
}

#[test]
fn the_table_for_people_shows_every_figure() {
    let file = SqliteFile::new();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_order-fulfilment"))
        .args(["--database", &file.url()])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    for figure in [
        "orders read",
        "orders refused",
        "orders placed",
        "orders paid",
        "orders reserved",
        "cancelled",
        "events committed",
        "events published",
        "events handled",
        "duplicates absorbed",
        "Everything balances.",
    ] {
        assert!(said.contains(figure), "{figure} is missing in\n{said}");
    }
    assert!(output.status.success());
}

/// A check that can't fail proves nothing: each part of the books is falsified once.
#[tokio::test]
async fn falsified_books_do_not_balance() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("orders.csv");
    let orders = "order_id,customer_id,sku,quantity,unit_price_cents\n\
        o1,c1,s1,2,100\no2,c1,s1,3,100\no3,c2,s1,1000,1\n";
    std::fs::write(&csv, orders).unwrap();
    for (falsify, noticed) in [
        (
            "UPDATE inventory_stock SET on_hand = on_hand - 1",
            "gone from shelves",
        ),
        (
            "UPDATE payment_accounts SET spent_cents = spent_cents + 1 WHERE customer_id = 'c1'",
            "spent on accounts",
        ),
        (
            "UPDATE ordering_orders SET status = 'cancelled' WHERE id = 'o1'",
            "orders paid",
        ),
        (
            "UPDATE ordering_orders SET status = 'placed' WHERE id = 'o3'",
            "confirmed + cancelled",
        ),
        (
            "UPDATE ordering_orders SET version = version + 1 WHERE id = 'o1'",
            "changes of orders",
        ),
        (
            "DELETE FROM outbox_message WHERE event_type = 'PaymentRefunded'",
            "captured - refunded",
        ),
        (
            "DELETE FROM inbox_message WHERE consumer = 'payment.refund'",
            "inbox rows",
        ),
        (
            "UPDATE inbox_message SET message_id = randomblob(16) WHERE consumer = 'payment.refund'",
            "handled twice",
        ),
    ] {
        let file = SqliteFile::new();
        let run = || {
            let mut command = program(&file.url());
            command
                .arg("--orders")
                .arg(&csv)
                .args(["--relay-restarts", "0", "--patience", "1"]);
            command
        };
        balanced(&mut run());
        let pool = sqlx::SqlitePool::connect(&file.url()).await.unwrap();
        sqlx::query(falsify).execute(&pool).await.unwrap();
        pool.close().await;

        let output = run().output().unwrap();
        let books = support::books(&output);
        assert_eq!(output.status.code(), Some(1), "{falsify}: {books:#}");
        let mut checks = books["checks"].as_array().unwrap().iter();
        assert!(
            checks.any(|check| check["balanced"] == false
                && check["name"].as_str().unwrap().contains(noticed)),
            "{falsify}: {books:#}"
        );
    }
}
