use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbox_runtime::Error;
use outbox_runtime::backoff::Backoff;
use outbox_runtime::handler::States;
use outbox_runtime::inbox::{Consumer, ConsumerOptions};
use outbox_runtime::prelude::*;
use outbox_runtime::retry::RetryPolicy;
use outbox_tests::{Answer, Fixture, Postman, TestDatabase, message, on_both_databases};
use serde::{Deserialize, Serialize, Serializer};
use tokio_util::sync::CancellationToken;

on_both_databases!(
    in_a_handler_they_cost_an_attempt_and_the_worker_lives_on,
    in_a_unit_of_work_they_leave_nothing,
);

/// What a serializer does.
#[derive(Debug, Clone, Copy, Deserialize)]
enum Mood {
    Fails,
    Panics,
    Works,
}

impl Serialize for Mood {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fails => Err(serde::ser::Error::custom("the serializer fails")),
            // Unlike a panic, it is silent.
            Self::Panics => std::panic::resume_unwind(Box::new("the serializer panics")),
            Self::Works => serializer.serialize_str("Works"),
        }
    }
}

/// An event that can't always be written.
#[domain_event(version = 1)]
struct Moody {
    mood: Mood,
}

/// Asks for a moody event.
#[domain_event(version = 1)]
struct Poked {
    times: u32,
}

/// Counts attempts.
#[derive(Clone, Default)]
struct Attempts(Arc<AtomicUsize>);

#[idempotent_handler(consumer = "moody.poke", key = "{message_id}")]
async fn poke<DB: Backend>(
    _event: Envelope<Poked>,
    uow: &mut UnitOfWork<'_, DB>,
    State(attempts): State<Attempts>,
) -> Result<(), Error> {
    let mood = match attempts.0.fetch_add(1, Ordering::SeqCst) {
        0 => Mood::Fails,
        1 => Mood::Panics,
        _ => Mood::Works,
    };
    uow.raise(Moody { mood: Mood::Works })?;
    uow.raise(Moody { mood })
}

async fn in_a_handler_they_cost_an_attempt_and_the_worker_lives_on<DB: TestDatabase>(
    fixture: Fixture<DB>,
) {
    let (postman, attempts) = (Postman::new(), Attempts::default());
    let mut states = States::default();
    states.insert(attempts.clone());
    let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
    let consumer = Consumer::new(fixture.outbox.clone(), postman.clone())
        .with_states(states)
        .with_options(
            ConsumerOptions::new()
                .concurrency(1)
                .backoff(backoff)
                // An event that can't be written is a permanent failure.
                .retry(RetryPolicy::new().permanent_attempts(3)),
        )
        .select_consumers(|name| name == "moody.poke");
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move {
            consumer.run_until(stop.cancelled()).await.unwrap();
            consumer.counts()
        }
    });
    for times in 1..=2 {
        let poked = message(&Poked { times }, "a", i64::from(times));
        let answer = postman.deliver(&poked).await.unwrap();
        assert_eq!(answer, Answer::Acknowledged);
    }
    while fixture.events().await < 4 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    let counts = running.await.unwrap();
    assert_eq!((counts.handled, counts.failed_attempts), (2, 2));
    assert_eq!(attempts.0.load(Ordering::SeqCst), 4);
    assert_eq!(fixture.events().await, 4, "two for each message");
}

async fn in_a_unit_of_work_they_leave_nothing<DB: TestDatabase>(fixture: Fixture<DB>) {
    for mood in [Mood::Fails, Mood::Panics] {
        let outbox = fixture.outbox.clone();
        let unit = tokio::spawn(async move {
            let mut uow = outbox.begin(MessageContext::new()).await?;
            uow.raise(Moody { mood: Mood::Works })?;
            uow.connection().await?;
            let raised = uow.raise(Moody { mood });
            assert!(matches!(raised, Err(Error::Encode(_))), "{raised:?}");
            // Half of it is not to be had.
            uow.commit().await
        });
        match unit.await {
            Ok(committed) => assert!(matches!(committed, Err(Error::MustRollBack))),
            Err(unwound) => assert!(unwound.is_panic() && matches!(mood, Mood::Panics)),
        }
        assert_eq!(fixture.events().await, 0);
    }
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.raise(Moody { mood: Mood::Works }).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.events().await, 1);
}
