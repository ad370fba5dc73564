use std::time::Duration;

use super::*;
use crate::broker::cloud_events::{Binding, Decoder};
use crate::broker::{RawMessage, Subscription};

fn place(partition: i32) -> Place {
    Place {
        topic: "t".into(),
        partition,
    }
}

/// A member that has partition 0.
fn member() -> Assignment {
    let assignment = Assignment::default();
    assignment.assign([place(0)]);
    assignment
}

fn decoded() -> Option<Decoded> {
    let nothing = Subscription::new("group", [""; 0]);
    let raw = RawMessage::new("t", "0/0", "no event");
    Decoder::new(Binding::KAFKA, &nothing, &[]).decode(&raw, None)
}

/// What the member's thread does with a message. Whether it was of use.
fn arrive(assignment: &Assignment, offset: i64) -> bool {
    let ticket = assignment.admit(&place(0), offset);
    let is_admitted = ticket.is_some();
    if let Some(ticket) = ticket {
        assignment.hand_over(ticket, decoded());
    }
    is_admitted
}

async fn next(assignment: &Assignment) -> Ticket {
    assignment.next().await.unwrap().unwrap().ticket
}

#[tokio::test]
async fn positions_are_told_once_and_again_after_a_failure() {
    let assignment = member();
    assert_eq!(assignment.to_tell(), []);
    for offset in 5..8 {
        assert!(arrive(&assignment, offset));
    }
    assert_eq!(assignment.to_tell(), [(place(0), 5)]);
    let tickets = [next(&assignment).await, next(&assignment).await];
    assert!(assignment.finish(&tickets[1]));
    assert_eq!(assignment.to_tell(), []);
    assert!(assignment.finish(&tickets[0]));
    assert_eq!(assignment.to_tell(), [(place(0), 7)]);
    assert_eq!(assignment.to_tell(), []);
    assignment.not_told([place(0)]);
    assert_eq!(assignment.to_tell(), [(place(0), 7)]);
}

#[tokio::test]
async fn what_is_given_back_comes_again_before_what_is_behind_it() {
    let assignment = member();
    for offset in 0..5 {
        arrive(&assignment, offset);
    }
    let tickets = [
        next(&assignment).await,
        next(&assignment).await,
        next(&assignment).await,
    ];
    assert!(assignment.finish(&tickets[0]));
    assignment.give_back(&tickets[1]);
    // What waited is gone, what was taken counts no longer, what comes before the seek is of no use.
    assert_eq!(assignment.unfinished(), 0);
    assert!(!assignment.finish(&tickets[2]));
    assert!(!arrive(&assignment, 5));
    assert_eq!(assignment.given_back(), [(place(0), 1)]);
    assignment.went_back(&place(0));
    assert_eq!(assignment.given_back(), []);
    for offset in 1..6 {
        assert!(arrive(&assignment, offset));
    }
    for (offset, attempt) in [(1, 2), (2, 2), (3, 2), (4, 2), (5, 1)] {
        let ticket = next(&assignment).await;
        assert_eq!((ticket.offset, ticket.attempt), (offset, attempt));
        assert!(assignment.finish(&ticket));
    }
    assert_eq!(assignment.to_tell(), [(place(0), 6)]);
    // A second answer to the same is of no effect.
    assignment.give_back(&tickets[1]);
    assert_eq!(assignment.given_back(), []);
}

#[tokio::test]
async fn a_message_that_is_given_back_while_an_earlier_one_is_in_work_goes_back_to_that() {
    let assignment = member();
    for offset in 0..2 {
        arrive(&assignment, offset);
    }
    let (_first, second) = (next(&assignment).await, next(&assignment).await);
    assignment.give_back(&second);
    assert_eq!(assignment.given_back(), [(place(0), 0)]);
}

#[tokio::test]
async fn a_revoked_partition_is_forgotten_with_all_that_was_taken() {
    let assignment = member();
    assignment.assign([place(1)]);
    for offset in 0..3 {
        arrive(&assignment, offset);
    }
    let tickets = [next(&assignment).await, next(&assignment).await];
    assert!(assignment.finish(&tickets[0]));
    assert_eq!(assignment.revoke([place(0), place(1)]), [(place(0), 1)]);
    assert_eq!(assignment.unfinished(), 0);
    assert!(!assignment.finish(&tickets[1]));
    assert!(!arrive(&assignment, 3));
    // Also when it comes back, with the same offsets.
    assignment.assign([place(0)]);
    arrive(&assignment, 1);
    assert!(!assignment.finish(&tickets[1]));
    assignment.give_back(&tickets[1]);
    let again = next(&assignment).await;
    assert_eq!(again.offset, 1);
    assert!(assignment.finish(&again));
}

#[tokio::test]
async fn a_topic_that_begins_anew_is_read_from_its_beginning() {
    let assignment = member();
    for offset in [7, 8] {
        arrive(&assignment, offset);
    }
    let old = next(&assignment).await;
    arrive(&assignment, 0);
    assert_eq!(next(&assignment).await.offset, 0);
    assert!(!assignment.finish(&old));
    assert_eq!(assignment.to_tell(), [(place(0), 0)]);
}

#[tokio::test]
async fn an_error_is_told_once_and_ends_it() {
    let assignment = member();
    arrive(&assignment, 0);
    assignment.fail(BrokerError::new("receiving", "reasons"));
    assert!(assignment.has_ended());
    assert!(assignment.next().await.is_err());
    assert!(assignment.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_nothing() {
    let assignment = member();
    let wait = Duration::from_millis(1);
    assert!(tokio::time::timeout(wait, assignment.next()).await.is_err());
    arrive(&assignment, 0);
    assert_eq!(next(&assignment).await.offset, 0);
}
