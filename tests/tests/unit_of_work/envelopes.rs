use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{Account, BankDb, BellRang, SCHEMA};
use outbox_tests::{Fixture, on_both_databases};

on_both_databases!(
    a_new_correlation_is_the_first_message,
    the_context_is_inherited,
    a_context_that_does_not_fit_is_refused,
    a_business_key_is_stored_once,
    the_payload_is_stored_as_it_was_written,
);

async fn a_new_correlation_is_the_first_message<DB: BankDb>(fixture: Fixture<DB>) {
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise(BellRang { times: 1 }).unwrap();
    uow.raise(BellRang { times: 2 }).unwrap();
    uow.commit().await.unwrap();
    let correlations = fixture
        .texts("SELECT correlation_id FROM outbox_message ORDER BY id")
        .await;
    assert_eq!(correlations[0], correlations[1]);
    let first = correlations[0].replace('-', "");
    let id = if DB::NAME == "SQLite" {
        "lower(hex(message_id))"
    } else {
        "replace(message_id::text, '-', '')"
    };
    let ids = fixture
        .texts(&format!("SELECT {id} FROM outbox_message ORDER BY id"))
        .await;
    assert_eq!(ids[0], first);
    assert_ne!(ids[1], first);
}

async fn the_context_is_inherited<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let context = MessageContext::new()
        .correlation_id("order 7: ✓")
        .causation_id("command-1")
        .traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .header("tenant", "blue");
    let mut uow = fixture.outbox.begin(context).await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    uow.commit().await.unwrap();
    let row = "SELECT correlation_id || '|' || causation_id || '|' || producer || '|' || \
               aggregate_type || '|' || aggregate_id || '|' || CAST(headers AS TEXT) FROM outbox_message";
    assert_eq!(
        fixture.texts(row).await,
        [r#"order 7: ✓|command-1|test|Account|a|{"tenant":"blue"}"#]
    );
}

async fn a_context_that_does_not_fit_is_refused<DB: BankDb>(fixture: Fixture<DB>) {
    let bad = [
        MessageContext::new().correlation_id(""),
        MessageContext::new().correlation_id("x".repeat(256)),
        MessageContext::new().causation_id("a\0b"),
        MessageContext::new().header("", "x"),
        MessageContext::new().header("x", "y\nz"),
    ];
    for context in bad {
        let error = fixture.outbox.begin(context).await.unwrap_err();
        assert!(matches!(error, Error::Context(_)), "{error:?}");
    }
}

async fn a_business_key_is_stored_once<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    uow.commit().await.unwrap();
    fixture.run_sql("DELETE FROM account").await;

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut Account::open("a")).await.unwrap();
    let error = uow.commit().await.unwrap_err();
    let Error::DuplicateEvent { keys, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        keys[0],
        ("account.opened".to_owned(), "a:opened".to_owned())
    );
    assert_eq!(fixture.number("SELECT count(*) FROM account").await, 0);
    assert_eq!(fixture.events().await, 1);
}

async fn the_payload_is_stored_as_it_was_written<DB: BankDb>(fixture: Fixture<DB>) {
    fixture.run_sql(SCHEMA).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut Account::open("a \"quoted\" 👩‍🚀 \u{1}"))
        .await
        .unwrap();
    uow.commit().await.unwrap();
    let payload = fixture
        .texts("SELECT CAST(payload AS TEXT) FROM outbox_message")
        .await;
    assert_eq!(payload, [r#"{"account_id":"a \"quoted\" 👩‍🚀 \u0001"}"#]);
}
