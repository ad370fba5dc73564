use std::future::pending;
use std::time::Duration;

use async_trait::async_trait;
use time::OffsetDateTime;
use uuid::Uuid;

use super::*;
use crate::domain::{AggregateRef, MessageId, Metadata};

#[derive(Clone, Copy)]
enum Does {
    RefuseSecond,
    Panic,
    Hang,
    AnswerOnce,
}

#[async_trait]
impl Publisher for Does {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        match self {
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
        message: Message {
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
        },
    }
}

/// Ids taken and ids left, by key, of a batch a1 a2 a3 b4.
async fn outcome(does: Does) -> Vec<(Vec<i64>, Vec<i64>, Option<String>)> {
    let key = |name: &str| Key {
        shard: 0,
        ordering: ("Thing".to_owned(), name.to_owned()),
    };
    let batch = vec![
        Taken {
            key: key("a"),
            items: vec![item(1, "a"), item(2, "a"), item(3, "a")],
        },
        Taken {
            key: key("b"),
            items: vec![item(4, "b")],
        },
    ];
    let deadline = Instant::now() + Duration::from_millis(20);
    let published = publish(Arc::new(does), batch, deadline).await;
    published
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
