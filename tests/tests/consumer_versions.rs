//! Several handlers of one event, and handlers that share its versions out among themselves.

#![allow(clippy::unwrap_used, unreachable_pub)]

use std::sync::{Arc, Mutex};

use outbox_runtime::Error;
use outbox_runtime::handler::States;
use outbox_runtime::inbox::Consumer;
use outbox_runtime::prelude::*;
use outbox_tests::{Answer, Fixture, Postman, TestDatabase, message, on_both_databases};

on_both_databases!(
    each_consumer_gets_each_version_by_its_own_handler,
    a_key_is_of_one_consumer_and_one_message,
);

/// As it was told at first.
#[domain_event(version = 1, name = "price.set")]
pub struct PriceSetV1 {
    pub sku: String,
    pub cents: i64,
}

/// As it is told now.
#[domain_event(version = 2, name = "price.set", upcast_from = PriceSetV1)]
pub struct PriceSet {
    pub sku: String,
    pub cents: i64,
    pub currency: String,
}

impl From<PriceSetV1> for PriceSet {
    fn from(old: PriceSetV1) -> Self {
        Self {
            sku: old.sku,
            cents: old.cents,
            currency: "EUR".to_owned(),
        }
    }
}

/// What was called with what.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn add(&self, call: String) {
        self.0.lock().unwrap().push(call);
    }

    fn take(&self) -> Vec<String> {
        let mut calls = std::mem::take(&mut *self.0.lock().unwrap());
        calls.sort();
        calls
    }
}

#[idempotent_handler(consumer = "prices", key = "{message_id}", versions = 1..=1)]
async fn old_price<DB: Backend>(
    event: Envelope<PriceSetV1>,
    _: &mut UnitOfWork<'_, DB>,
    State(calls): State<Calls>,
) -> Result<(), Error> {
    calls.add(format!("prices, old: {}", event.cents));
    Ok(())
}

#[idempotent_handler(consumer = "prices", key = "{message_id}", versions = 2..=2)]
async fn new_price<DB: Backend>(
    event: Envelope<PriceSet>,
    _: &mut UnitOfWork<'_, DB>,
    State(calls): State<Calls>,
) -> Result<(), Error> {
    calls.add(format!("prices, new: {} {}", event.cents, event.currency));
    Ok(())
}

#[idempotent_handler(consumer = "audit", key = "{event.sku}:{sequence}")]
async fn audit<DB: Backend>(
    event: Envelope<PriceSet>,
    _: &mut UnitOfWork<'_, DB>,
    State(calls): State<Calls>,
) -> Result<(), Error> {
    calls.add(format!("audit: {} {}", event.cents, event.currency));
    Ok(())
}

struct Scene {
    postman: Postman,
    calls: Calls,
}

fn start<DB: TestDatabase>(fixture: &Fixture<DB>) -> Scene {
    let (postman, calls) = (Postman::new(), Calls::default());
    let mut states = States::default();
    states.insert(calls.clone());
    let consumer = Consumer::new(fixture.outbox.clone(), postman.clone()).with_states(states);
    tokio::spawn(async move { consumer.run_until(std::future::pending()).await });
    Scene { postman, calls }
}

async fn each_consumer_gets_each_version_by_its_own_handler<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase,
{
    let Scene { postman, calls } = start(&fixture);
    let old = PriceSetV1 {
        sku: "cup".to_owned(),
        cents: 500,
    };
    let answer = postman.deliver(&message(&old, "cup", 1)).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
    assert_eq!(calls.take(), ["audit: 500 EUR", "prices, old: 500"]);

    let new = PriceSet {
        sku: "cup".to_owned(),
        cents: 600,
        currency: "USD".to_owned(),
    };
    let answer = postman.deliver(&message(&new, "cup", 2)).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
    assert_eq!(calls.take(), ["audit: 600 USD", "prices, new: 600 USD"]);
}

async fn a_key_is_of_one_consumer_and_one_message<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase,
{
    let Scene { postman, calls } = start(&fixture);
    let price = |sku: &str| PriceSet {
        sku: sku.to_owned(),
        cents: 600,
        currency: "USD".to_owned(),
    };
    // Another message with the same business key: new to the one consumer, known to the other.
    for sku in ["cup", "cup", "CUP", "cup "] {
        let answer = postman.deliver(&message(&price(sku), sku, 1)).await;
        assert_eq!(answer.unwrap(), Answer::Acknowledged);
    }
    let calls = calls.take();
    let of = |consumer: &str| {
        calls
            .iter()
            .filter(|call| call.starts_with(consumer))
            .count()
    };
    assert_eq!(of("prices"), 4);
    assert_eq!(of("audit"), 3);
}
