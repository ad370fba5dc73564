use std::collections::BTreeMap;

use futures_util::FutureExt;
use time::OffsetDateTime;
use uuid::Uuid;

use super::*;
use crate::domain::{MessageId, Metadata};

fn message(bytes: usize) -> Message {
    Message {
        metadata: Metadata {
            message_id: MessageId::from_uuid(Uuid::nil()),
            event_type: "Paid".to_owned(),
            schema_version: 1,
            aggregate: None,
            correlation_id: "c".to_owned(),
            causation_id: None,
            producer: "tests".to_owned(),
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            traceparent: None,
            tracestate: None,
            headers: BTreeMap::new(),
        },
        payload: "x".repeat(bytes),
    }
}

fn take(places: &Places, bytes: usize) -> Option<Place> {
    let one = places.one().now_or_never()??;
    places.room_for(one, &message(bytes)).now_or_never()?
}

#[test]
fn messages_and_bytes_are_bounded() {
    let places = Places::new(3, 4 * KIB);
    let first = take(&places, 3 * KIB).expect("there is room");
    assert!(take(&places, 2 * KIB).is_none(), "too many bytes");
    let second = take(&places, KIB).expect("there is room");
    drop(first);
    let third = take(&places, 1).expect("there is room");
    let fourth = take(&places, 1).expect("there is room");
    assert!(take(&places, 1).is_none(), "too many messages");
    drop((second, third, fourth));
    assert!(take(&places, 4 * KIB).is_some());
}

#[test]
fn a_message_larger_than_all_the_room_goes_alone() {
    let places = Places::new(9, 4 * KIB);
    let small = take(&places, KIB).expect("there is room");
    assert!(take(&places, 100 * KIB).is_none());
    drop(small);
    let large = take(&places, 100 * KIB).expect("it is alone");
    assert!(take(&places, 1).is_none());
    drop(large);
    assert!(take(&places, 1).is_some());
}

#[test]
fn any_number_can_be_asked_for() {
    for (messages, bytes) in [(1, 0), (usize::MAX, usize::MAX)] {
        assert!(take(&Places::new(messages, bytes), 10).is_some());
    }
}
