use std::future::pending;
use std::time::Duration;

use async_trait::async_trait;
use time::OffsetDateTime;
use uuid::Uuid;

use super::*;
use crate::domain::{AggregateRef, MessageId, Metadata};
use crate::telemetry::metrics::Metrics;

#[derive(Clone, Copy)]
enum Does {
    Take,
    RefuseSecond,
    Panic,
    Hang,
    AnswerOnce,
}

#[async_trait]
impl Publisher for Does {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        match self {
            Self::Take => messages.iter().map(|_| Ok(())).collect(),
            Self::RefuseSecond => messages
                .iter()
                .enumerate()
                .map(|(n, _)| {
                    if n == 1 {
                        Err(PublishError::permanent("no"))
                    } else {
                        Ok(())
                    }
                })
                .collect(),
            Self::Panic => panic!("on purpose"),
            Self::Hang => pending().await,
            Self::AnswerOnce => vec![Ok(())],
        }
    }
}

fn item(id: i64, aggregate: &str) -> Item {
    Item {
        id,
        epoch: 1,
        failed: (0, Duration::ZERO),
        content: Ok(Box::new(Message {
            metadata: Metadata {
                message_id: MessageId::from_uuid(Uuid::from_u128(1)),
                event_type: "Happened".to_owned(),
                schema_version: 1,
                aggregate: Some(AggregateRef {
                    aggregate_type: "Thing".to_owned(),
                    aggregate_id: aggregate.to_owned(),
                    sequence: id,
                }),
                correlation_id: String::new(),
                causation_id: None,
                producer: String::new(),
                occurred_at: OffsetDateTime::UNIX_EPOCH,
                traceparent: None,
                tracestate: None,
                headers: Default::default(),
            },
            payload: "{}".to_owned(),
        })),
    }
}

fn lease(seconds: u64) -> watch::Sender<Instant> {
    watch::Sender::new(Instant::now() + Duration::from_secs(seconds))
}

/// Ids taken and ids left, by key, of a batch a1 a2 a3 b4.
async fn outcome(does: Does) -> Vec<(Vec<i64>, Vec<i64>, Option<String>)> {
    outcome_of(does, vec![item(1, "a"), item(2, "a"), item(3, "a")]).await
}

async fn outcome_of(does: Does, of_a: Vec<Item>) -> Vec<(Vec<i64>, Vec<i64>, Option<String>)> {
    let key = |name: &str| Key {
        shard: 0,
        lane: name.into(),
    };
    let batch = vec![
        Taken {
            key: key("a"),
            items: of_a.into(),
        },
        Taken {
            key: key("b"),
            items: [item(4, "b")].into(),
        },
    ];
    let limit = Limit {
        latest: Instant::now() + Duration::from_millis(20),
        lease: lease(60).subscribe(),
    };
    let done = publish(
        Arc::new(does),
        batch,
        limit,
        Metrics::new("test", &crate::clock::Clock::system()),
    )
    .await;
    done.published
        .into_iter()
        .map(|one| {
            let taken = one.taken.iter().map(|place| place.0).collect();
            let rest = one.rest.iter().map(|item| item.id).collect();
            (taken, rest, one.error.map(|error| error.to_string()))
        })
        .collect()
}

#[tokio::test]
async fn what_stands_behind_a_failure_comes_again_with_it() {
    let outcome = outcome(Does::RefuseSecond).await;
    assert_eq!(
        (&outcome[0].0[..], &outcome[0].1[..]),
        (&[1][..], &[2, 3][..])
    );
    assert!(outcome[0].2.as_ref().unwrap().contains("refuses"));
    assert_eq!(outcome[1], (vec![4], vec![], None));
}

#[tokio::test]
async fn nothing_counts_as_taken_on_hope() {
    for (does, reason) in [(Does::Panic, "on purpose"), (Does::Hang, "in time")] {
        let outcome = outcome(does).await;
        assert!(outcome.iter().all(|(taken, _, _)| taken.is_empty()));
        assert_eq!(outcome[0].1, [1, 2, 3]);
        assert!(outcome[1].2.as_ref().unwrap().contains(reason));
    }
    let outcome = outcome(Does::AnswerOnce).await;
    assert_eq!(
        (&outcome[0].0[..], &outcome[0].1[..]),
        (&[1][..], &[2, 3][..])
    );
    assert_eq!(outcome[1].1, [4]);
}

/// After how many seconds a call of up to a minute ends, when its lease of three seconds is
/// renewed at these times.
async fn ends_after(renewals: &[u64]) -> u64 {
    let began = Instant::now();
    let lease = lease(3);
    let limit = Limit {
        latest: began + Duration::from_secs(60),
        lease: lease.subscribe(),
    };
    let renewing = async {
        for &renewal in renewals {
            let at = began + Duration::from_secs(renewal);
            tokio::time::sleep_until(at).await;
            lease.send_replace(at + Duration::from_secs(3));
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = limit.reached() => began.elapsed().as_secs(),
        () = renewing => 0,
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_for_as_long_as_the_lease_is_renewed() {
    assert_eq!(ends_after(&[]).await, 3);
    assert_eq!(ends_after(&[1, 2, 3]).await, 6);
    assert_eq!(ends_after(&[1, 2, 9]).await, 5, "renewed too late");
    let often: Vec<u64> = (1..100).collect();
    assert_eq!(ends_after(&often).await, 60, "its own time is over");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_unseen_has_ended() {
    let lease = lease(3);
    let limit = Limit {
        latest: Instant::now() + Duration::from_secs(60),
        lease: lease.subscribe(),
    };
    let mut reached = Box::pin(limit.reached());
    assert!((&mut reached).now_or_never().is_none());
    tokio::time::advance(Duration::from_secs(4)).await;
    lease.send_replace(Instant::now() + Duration::from_secs(3));
    assert!(reached.now_or_never().is_some());
}

fn no_message(id: i64) -> Item {
    let unreadable = Unreadable {
        reason: "headers is no JSON object".to_owned(),
        event_type: None,
        aggregate: None,
    };
    Item {
        content: Err(Box::new(unreadable)),
        ..item(id, "a")
    }
}

#[tokio::test]
async fn a_row_that_is_no_message_fails_in_its_turn() {
    let outcome = outcome_of(Does::Take, vec![item(1, "a"), no_message(2), item(3, "a")]).await;
    let (taken, rest, reason) = &outcome[0];
    assert_eq!((&taken[..], &rest[..]), (&[1][..], &[2, 3][..]));
    assert!(reason.as_ref().unwrap().contains("no JSON object"));
    assert_eq!(
        outcome[1],
        (vec![4], vec![], None),
        "the other key's results stay its own"
    );
}

#[test]
fn rows_without_an_aggregate_wait_for_nobody() {
    assert_ne!(Key::alone(0, 1), Key::alone(0, 2));
}
