use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BankDb, BellRang, SCHEMA, id};
use outbox_tests::{Fixture, on_both_databases};

on_both_databases!(
    migrating_again_changes_nothing,
    the_book_names_every_table,
    tables_that_are_missing_or_newer_are_told,
    two_services_share_a_database_by_their_prefix,
    the_sql_can_be_run_by_another_tool,
    names_that_are_no_identifiers_are_refused,
);

async fn migrating_again_changes_nothing<DB: BankDb>(fixture: Fixture<DB>) {
    let all = (0..4).map(|_| fixture.outbox.migrate());
    for done in futures_util::future::join_all(all).await {
        done.unwrap();
    }
    fixture.outbox.check_migrations().await.unwrap();
    let rows = "SELECT count(*) FROM outbox_migration";
    assert_eq!(
        fixture.number(rows).await,
        i64::try_from(fixture.outbox.migrations().len()).unwrap()
    );
    assert_eq!(
        fixture.number("SELECT count(*) FROM outbox_shard").await,
        64
    );
}

async fn the_book_names_every_table<DB: BankDb>(fixture: Fixture<DB>) {
    let page = include_str!("../../../book/src/databases.md");
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let mut tables = 0;
    for migration in fixture.outbox.migrations() {
        for rest in migration.sql.split("CREATE TABLE ").skip(1) {
            let words = |c: char| !c.is_alphanumeric() && c != '_';
            let table = rest.split(words).find(|word| !word.is_empty()).unwrap();
            let name = format!("`{table}`");
            assert!(rows.iter().any(|row| row.contains(&name)), "{name}");
            tables += 1;
        }
    }
    assert!(tables >= 19, "{tables}");
}

async fn tables_that_are_missing_or_newer_are_told<DB: BankDb>(fixture: Fixture<DB>) {
    let other = Outbox::builder("other", fixture.pool.clone())
        .prefix("other_")
        .build()
        .unwrap();
    let error = other.check_migrations().await.unwrap_err();
    assert!(
        matches!(error, Error::NotMigrated { found: 0, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("Outbox::migrate"), "{error}");

    fixture
        .run_sql("INSERT INTO outbox_migration (version, name) VALUES (99, 'future')")
        .await;
    let error = fixture.outbox.check_migrations().await.unwrap_err();
    assert!(
        matches!(error, Error::MigrationsTooNew { found: 99, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("newer version"), "{error}");
}

async fn two_services_share_a_database_by_their_prefix<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let billing = Outbox::builder("billing", fixture.pool.clone())
        .prefix("billing_")
        .build()
        .unwrap();
    billing.migrate().await.unwrap();
    for (outbox, account) in [(&fixture.outbox, "a"), (&billing, "b")] {
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        uow.add(&mut Account::open(account)).await.unwrap();
        uow.commit().await.unwrap();
    }
    let ids = "SELECT aggregate_id FROM";
    assert_eq!(fixture.texts(&format!("{ids} outbox_message")).await, ["a"]);
    assert_eq!(
        fixture
            .texts(&format!("{ids} billing_outbox_message"))
            .await,
        ["b"]
    );
    let mut uow = billing.begin(MessageContext::new()).await.unwrap();
    uow.get::<Account>(&id("a")).await.unwrap();
    // A taken business key is told under another name of the index, too.
    fixture.run_sql("DELETE FROM account").await;
    let mut uow = billing.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut Account::open("b")).await.unwrap();
    let error = uow.commit().await.unwrap_err();
    assert!(matches!(error, Error::DuplicateEvent { .. }), "{error:?}");
}

async fn the_sql_can_be_run_by_another_tool<DB: BankDb>(fixture: Fixture<DB>) {
    let outbox = Outbox::builder("late", fixture.pool.clone())
        .prefix("late_")
        .build()
        .unwrap();
    for migration in outbox.migrations() {
        fixture.run_sql(&migration.sql).await;
    }
    outbox.check_migrations().await.unwrap();
    outbox.migrate().await.unwrap();
    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(
        fixture
            .number("SELECT count(*) FROM late_outbox_message")
            .await,
        1
    );
}

async fn names_that_are_no_identifiers_are_refused<DB: BankDb>(fixture: Fixture<DB>) {
    for bad in ["x; DROP TABLE account", "1x", "a\"b"] {
        let built = Outbox::builder("x", fixture.pool.clone())
            .prefix(bad)
            .build();
        assert!(matches!(built, Err(Error::Names(_))), "{bad}");
        let built = Outbox::builder("x", fixture.pool.clone())
            .schema(bad)
            .build();
        assert!(matches!(built, Err(Error::Names(_))), "{bad}");
    }
}

#[tokio::test]
async fn a_schema_on_sqlite_is_refused() {
    let fixture = outbox_tests::sqlite().await;
    let built = Outbox::builder("x", fixture.pool.clone())
        .schema("shop")
        .build();
    assert!(matches!(built, Err(Error::NoSchemas)), "{built:?}");
}

#[tokio::test]
async fn a_custom_schema_is_created_and_used() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    let outbox = Outbox::builder("shop", fixture.pool.clone())
        .schema("shop")
        .prefix("s_")
        .build()
        .unwrap();
    outbox.migrate().await.unwrap();
    outbox.check_migrations().await.unwrap();
    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(
        fixture
            .number("SELECT count(*) FROM shop.s_outbox_message")
            .await,
        1
    );
}

/// Our tables beside the user's own sqlx migrations, whichever runs first.
#[tokio::test]
async fn migrations_live_beside_those_of_sqlx() {
    use std::borrow::Cow;

    use sqlx::SqlSafeStr;
    use sqlx::migrate::{Migration, MigrationType, Migrator};

    let user = |pool: sqlx::PgPool| async move {
        let migration = Migration::new(
            1,
            Cow::Borrowed("account"),
            MigrationType::Simple,
            SCHEMA.into_sql_str(),
            false,
        );
        let migrator = Migrator {
            migrations: Cow::Owned(vec![migration]),
            ..Migrator::DEFAULT
        };
        migrator.run(&pool).await.unwrap();
    };
    for ours_first in [true, false] {
        let Some(fixture) = outbox_tests::postgres().await else {
            return;
        };
        let outbox = Outbox::builder("x", fixture.pool.clone())
            .prefix("x_")
            .build()
            .unwrap();
        if ours_first {
            outbox.migrate().await.unwrap();
            user(fixture.pool.clone()).await;
        } else {
            user(fixture.pool.clone()).await;
            outbox.migrate().await.unwrap();
        }
        user(fixture.pool.clone()).await;
        outbox.migrate().await.unwrap();
        let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
        uow.add(&mut Account::open("a")).await.unwrap();
        uow.commit().await.unwrap();
    }
}
