//! Many messages in one transaction: what is exact without batches is exact with them.
#![allow(clippy::unwrap_used)]

mod consumer_support;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use consumer_support::{AccountId, Paid, Running, eventually, options, paid};
use outbox_runtime::handler::States;
use outbox_runtime::inbox::{Consumer, ConsumerOptions};
use outbox_runtime::prelude::*;
use outbox_runtime::retry::RetryPolicy;
use outbox_runtime::{Message, MessageId};
use outbox_tests::{Answer, Fixture, Postman, TestDatabase, message, on_both_databases};
use tokio::sync::Semaphore;

#[path = "consumer_batches/faulty.rs"]
mod faulty;
#[path = "consumer_batches/ledger.rs"]
mod ledger;
#[path = "consumer_batches/on_a_server.rs"]
#[cfg(feature = "postgres")]
mod on_a_server;

use ledger::*;

on_both_databases!(
    all_of_a_batch_have_their_effects,
    a_poison_message_of_a_batch_is_parked_alone,
    a_poison_message_holds_its_own_lane_and_no_other,
    messages_with_one_key_have_one_effect,
    duplicates_among_new_messages_change_nothing,
    messages_in_several_versions_go_their_ways,
    a_batch_that_is_cut_off_leaves_nothing,
    a_batch_waits_for_no_further_message,
    faulty_handlers_in_batches_have_exact_effects,
);

use faulty::faulty_handlers_in_batches_have_exact_effects;

async fn all_of_a_batch_have_their_effects<DB: LedgerDb>(fixture: Fixture<DB>) {
    let ledger = Ledger::open(&fixture).await;
    let (postman, running) = ledger.consume(&fixture, batches(16), &[SUM, COUNT]);
    let messages = messages(40, 5);
    all_acknowledged(&postman, &messages).await;
    running.wait_for_handled(400).await;
    let counts = running.consumer.counts();
    running.stop().await.unwrap();
    assert!(counts.batches >= 5, "{counts:?}");
    assert_eq!(counts.batches_rolled_back, 0, "{counts:?}");
    ledger.balances(&fixture, &messages, 2).await;
    // Two events for each message, each with the message as its cause and in its business process.
    assert_eq!(fixture.events().await, 400);
    let causes = "SELECT count(DISTINCT causation_id) FROM outbox_message";
    assert_eq!(fixture.number(causes).await, 200);
    let wrong = "SELECT count(*) FROM outbox_message \
                 WHERE aggregate_id NOT LIKE '%:' || substr(correlation_id, length('correlation-') + 1)";
    assert_eq!(fixture.number(wrong).await, 0);
}

async fn a_poison_message_of_a_batch_is_parked_alone<DB: LedgerDb>(fixture: Fixture<DB>) {
    let ledger = Ledger::open(&fixture).await;
    let messages = messages(30, 1);
    let poison = messages.get(17).unwrap();
    ledger.poison(poison.metadata.message_id);
    let (postman, running) = ledger.consume(&fixture, batches(30), &[SUM]);
    all_acknowledged(&postman, &messages).await;
    eventually(|| running.consumer.counts().dead == 1).await;
    running.wait_for_handled(29).await;
    let counts = running.consumer.counts();
    running.stop().await.unwrap();
    assert!(counts.batches_rolled_back >= 1, "{counts:?}");
    // That counts as no attempt: only the one that it made alone does.
    assert_eq!(
        (counts.failed_attempts, counts.parked),
        (1, 1),
        "{counts:?}"
    );
    assert_eq!(counts.duplicates, 0, "{counts:?}");
    let parked = fixture.texts("SELECT last_cause FROM inbox_parked").await;
    assert_eq!(parked, ["poison"]);
    assert_eq!(
        fixture
            .number("SELECT sum(attempts) FROM inbox_parked")
            .await,
        1
    );
    let others: Vec<_> = messages
        .iter()
        .filter(|message| message.metadata.message_id != poison.metadata.message_id)
        .cloned()
        .collect();
    ledger.balances(&fixture, &others, 1).await;
}

async fn a_poison_message_holds_its_own_lane_and_no_other<DB: LedgerDb>(fixture: Fixture<DB>) {
    let ledger = Ledger::open(&fixture).await;
    let messages = messages(8, 10);
    let poison = messages.get(8).unwrap();
    ledger.poison(poison.metadata.message_id);
    let (postman, running) = ledger.consume(&fixture, batches(8), &[SUM]);
    all_acknowledged(&postman, &messages).await;
    eventually(|| running.consumer.counts().dead == 1).await;
    // One message of the lane before it, and nine behind.
    running.wait_for_handled(71).await;
    assert_eq!(consumer_support::parked(&fixture).await, 9);
    ledger.cure();
    consumer_support::requeue(&fixture, "state = 'dead'").await;
    running.wait_for_handled(80).await;
    running.stop().await.unwrap();
    ledger.balances(&fixture, &messages, 1).await;
}

async fn messages_with_one_key_have_one_effect<DB: LedgerDb>(fixture: Fixture<DB>) {
    let ledger = Ledger::open(&fixture).await;
    let (postman, running) = ledger.consume(&fixture, batches(10), &[ONCE_AN_ACCOUNT]);
    // 60 messages of lanes of their own, about three accounts.
    let messages: Vec<_> = (0..60)
        .map(|n| message(&paid(&format!("a{}", n % 3), 1), &format!("lane-{n}"), 1))
        .collect();
    all_acknowledged(&postman, &messages).await;
    eventually(|| running.consumer.counts().duplicates == 57).await;
    running.wait_for_handled(3).await;
    running.stop().await.unwrap();
    assert_eq!(consumer_support::inbox(&fixture).await, 3);
    assert_eq!(fixture.events().await, 3);
}

async fn duplicates_among_new_messages_change_nothing<DB: LedgerDb>(fixture: Fixture<DB>) {
    let ledger = Ledger::open(&fixture).await;
    let messages = messages(50, 2);
    let (postman, running) = ledger.consume(&fixture, batches(20), &[SUM, COUNT]);
    let half: Vec<_> = messages.iter().step_by(2).cloned().collect();
    all_acknowledged(&postman, &half).await;
    all_acknowledged(&postman, &messages).await;
    running.wait_for_handled(200).await;
    all_acknowledged(&postman, &messages).await;
    let duplicates = running.consumer.counts().duplicates;
    running.stop().await.unwrap();
    assert_eq!(duplicates, 100 + 200);
    ledger.balances(&fixture, &messages, 2).await;
}

async fn messages_in_several_versions_go_their_ways<DB: LedgerDb>(fixture: Fixture<DB>) {
    let ledger = Ledger::open(&fixture).await;
    let mut messages = messages(20, 1);
    for message in messages.iter_mut().step_by(4) {
        message.metadata.schema_version = 9;
    }
    let (postman, running) = ledger.consume(&fixture, batches(20), &[SUM]);
    all_acknowledged(&postman, &messages).await;
    eventually(|| running.consumer.counts().dead == 5).await;
    running.wait_for_handled(15).await;
    assert_eq!(running.consumer.counts().unreadable, 5);
    running.stop().await.unwrap();
    messages.retain(|message| message.metadata.schema_version == 1);
    ledger.balances(&fixture, &messages, 1).await;
}

/// The process dies in the middle of a batch.
async fn a_batch_that_is_cut_off_leaves_nothing<DB: LedgerDb>(fixture: Fixture<DB>) {
    let ledger = Ledger::open(&fixture).await;
    let messages = messages(10, 1);
    let gate = Arc::new(Semaphore::new(0));
    ledger.wait_at(messages.last().unwrap().metadata.message_id, &gate);
    let (postman, running) = ledger.consume(&fixture, batches(10), &[SUM]);
    let answers: Vec<_> = messages.iter().map(|one| postman.deliver(one)).collect();
    eventually(|| ledger.is_at_gate()).await;
    running.crash().await;
    for answer in answers.into_iter().skip(1) {
        assert_eq!(answer.await.unwrap(), Answer::GivenBack);
    }
    // The first can have been handled before the others came.
    let handled = consumer_support::inbox(&fixture).await;
    assert!(handled <= 1, "{handled}");
    assert_eq!(fixture.events().await, handled);
    ledger.open_gate();
    let (postman, running) = ledger.consume(&fixture, batches(10), &[SUM]);
    all_acknowledged(&postman, &messages).await;
    running.stop().await.unwrap();
    ledger.balances(&fixture, &messages, 1).await;
}

async fn a_batch_waits_for_no_further_message<DB: LedgerDb>(fixture: Fixture<DB>) {
    let ledger = Ledger::open(&fixture).await;
    let (postman, running) = ledger.consume(&fixture, batches(1_000), &[SUM]);
    let messages = messages(1, 5);
    for one in &messages {
        assert_eq!(postman.deliver(one).await.unwrap(), Answer::Acknowledged);
    }
    running.stop().await.unwrap();
    ledger.balances(&fixture, &messages, 1).await;
}
