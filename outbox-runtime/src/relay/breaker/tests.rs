use std::time::Duration;

use super::Outcome::{Taken, Unclear};
use super::Permit::{Ordinary, Probe};
use super::*;

const FAILED: Outcome = Outcome::Failed { alone: false };
const ALONE: Outcome = Outcome::Failed { alone: true };
const LONGEST: Duration = Duration::from_secs(8);

fn breaker() -> Breaker {
    Breaker::new(3, Backoff::new(Duration::from_secs(1), LONGEST))
}

fn open(now: Instant) -> Breaker {
    let mut breaker = breaker();
    for _ in 0..2 {
        assert_eq!(breaker.ended(Ordinary, FAILED, now), None);
    }
    assert_eq!(breaker.ended(Ordinary, FAILED, now), Some(Change::Opened));
    breaker
}

fn probe_at(breaker: &Breaker) -> Instant {
    breaker.next_probe().expect("open")
}

#[test]
fn only_failures_in_a_row_open_it() {
    let now = Instant::now();
    let mut breaker = breaker();
    for _ in 0..10 {
        assert_eq!(breaker.ended(Ordinary, FAILED, now), None);
        assert_eq!(breaker.ended(Ordinary, FAILED, now), None);
        assert_eq!(breaker.ended(Ordinary, Taken, now), None);
    }
    // What says nothing of the broker neither counts nor interrupts.
    for _ in 0..10 {
        assert_eq!(breaker.ended(Ordinary, Unclear, now), None);
    }
    breaker.ended(Ordinary, FAILED, now);
    breaker.ended(Ordinary, FAILED, now);
    breaker.ended(Ordinary, Unclear, now);
    assert_eq!(breaker.circuit(), Circuit::Closed);
    assert_eq!(breaker.permit(now, 7), Some(Ordinary));
    assert_eq!(breaker.ended(Ordinary, FAILED, now), Some(Change::Opened));
    assert_eq!(breaker.permit(now, 7), None);
}

#[test]
fn one_probe_at_a_time_when_its_time_has_come_and_nothing_is_out() {
    let now = Instant::now();
    let mut breaker = open(now);
    let due = probe_at(&breaker);
    assert!(now <= due && due <= now + Duration::from_secs(1));
    if let Some(before) = due.checked_sub(Duration::from_nanos(1)) {
        assert_eq!(breaker.permit(before, 0), None);
    }
    assert_eq!(breaker.permit(due, 1), None, "a call from before is out");
    assert_eq!(breaker.permit(due, 0), Some(Probe));
    breaker.began(Probe);
    assert_eq!(
        breaker.circuit(),
        Circuit::HalfOpen {
            since: now.into_std()
        }
    );
    assert_eq!(breaker.next_probe(), None);
    assert_eq!(breaker.permit(due + LONGEST, 0), None);
    assert_eq!(breaker.ended(Probe, Taken, due), Some(Change::Closed));
    assert_eq!(breaker.circuit(), Circuit::Closed);
    assert_eq!(breaker.permit(due, 7), Some(Ordinary));
}

#[test]
fn waits_grow_with_each_probe_that_fails_and_since_stays() {
    let now = Instant::now();
    let mut breaker = open(now);
    let mut longest = Duration::ZERO;
    for wait in 2..40 {
        let due = probe_at(&breaker);
        breaker.began(Probe);
        assert_eq!(breaker.ended(Probe, FAILED, due), Some(Change::StaysOpen));
        let waited = probe_at(&breaker) - due;
        assert!(waited <= breaker.backoff.ceiling(wait));
        longest = longest.max(waited);
        let Circuit::Open { since, .. } = breaker.circuit() else {
            panic!("{:?}", breaker.circuit());
        };
        assert_eq!(since, now.into_std());
    }
    assert!(longest > Duration::from_secs(1), "{longest:?}");
    // Once it was closed, it begins anew.
    let due = probe_at(&breaker);
    breaker.began(Probe);
    breaker.ended(Probe, Taken, due);
    for _ in 0..3 {
        breaker.ended(Ordinary, FAILED, due);
    }
    assert!(probe_at(&breaker) <= due + Duration::from_secs(1));
}

#[test]
fn a_probe_that_tells_nothing_is_followed_by_another_at_once() {
    let now = Instant::now();
    let mut breaker = open(now);
    let due = probe_at(&breaker);
    breaker.began(Probe);
    assert_eq!(breaker.ended(Probe, Unclear, due), Some(Change::StaysOpen));
    assert_eq!(breaker.permit(due, 0), Some(Probe));
}

#[test]
fn calls_from_before_close_it_but_don_t_keep_it_open() {
    let now = Instant::now();
    let mut breaker = open(now);
    let due = probe_at(&breaker);
    for _ in 0..5 {
        assert_eq!(breaker.ended(Ordinary, FAILED, due), None);
        assert_eq!(breaker.ended(Ordinary, Unclear, due), None);
    }
    assert_eq!(probe_at(&breaker), due);
    assert_eq!(breaker.ended(Ordinary, Taken, due), Some(Change::Closed));
    assert_eq!(breaker.permit(due, 7), Some(Ordinary));
}

#[test]
fn one_aggregate_alone_does_not_open_it_but_keeps_it_open() {
    let now = Instant::now();
    let mut breaker = breaker();
    for _ in 0..10 {
        assert_eq!(breaker.ended(Ordinary, ALONE, now), None);
    }
    assert_eq!(breaker.permit(now, 0), Some(Ordinary));
    assert_eq!(breaker.ended(Ordinary, FAILED, now), Some(Change::Opened));
    let due = probe_at(&breaker);
    breaker.began(Probe);
    assert_eq!(breaker.ended(Probe, ALONE, due), Some(Change::StaysOpen));
}
