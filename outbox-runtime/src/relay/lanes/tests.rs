use std::collections::BTreeMap;
use std::time::Duration;

use super::*;

/// An item is as large as its number says.
impl Weighed for u32 {
    fn bytes(&self) -> usize {
        usize::try_from(*self).unwrap()
    }
}

impl Weighed for u64 {
    fn bytes(&self) -> usize {
        usize::try_from(*self % 7).unwrap()
    }
}

fn items(items: usize) -> Quota {
    Quota {
        items,
        bytes: usize::MAX,
        first: usize::MAX,
    }
}

fn backoff() -> Backoff {
    Backoff::new(Duration::from_millis(10), Duration::from_millis(100))
}

fn take_all(lanes: &mut Lanes<u32, u32>, now: Instant) -> Vec<(u32, Vec<u32>)> {
    let taken = lanes.take(items(usize::MAX), now, |_| true);
    taken.into_iter().map(key_and_items).collect()
}

fn key_and_items(taken: Taken<u32, u32>) -> (u32, Vec<u32>) {
    (taken.key, taken.items.into())
}

#[test]
fn a_busy_key_is_not_taken_again_and_keeps_its_order() {
    let mut lanes = Lanes::default();
    let now = Instant::now();
    for item in 1..=4 {
        lanes.push(item % 2, item);
    }
    assert_eq!(lanes.take(items(1), now, |_| true).len(), 1);
    assert_eq!(take_all(&mut lanes, now), [(0, vec![2, 4])]);
    lanes.push(0, 6);
    assert!(take_all(&mut lanes, now).is_empty());
    lanes.done(1);
    lanes.done(0);
    assert_eq!(take_all(&mut lanes, now), [(1, vec![3]), (0, vec![6])]);
    lanes.done(1);
    lanes.done(0);
    assert_eq!(lanes.held(), 0);
    assert!(lanes.lanes.is_empty());
}

#[test]
fn a_failing_key_holds_only_itself() {
    let mut lanes = Lanes::default();
    let (now, backoff) = (Instant::now(), backoff());
    for item in [10, 11, 12, 20] {
        lanes.push(item / 10, item);
    }
    assert_eq!(
        take_all(&mut lanes, now),
        [(1, vec![10, 11, 12]), (2, vec![20])]
    );
    assert_eq!(lanes.fail(&1, vec![11, 12], now, &backoff), 1);
    lanes.done(2);
    assert_eq!(lanes.held(), 2);
    let due = lanes.next_retry().unwrap();
    assert!(due <= now + Duration::from_millis(10));
    // After a failure only the head is tried.
    assert_eq!(take_all(&mut lanes, due), [(1, vec![11])]);
    assert_eq!(lanes.fail(&1, vec![11], due, &backoff), 2);
    let due = lanes.next_retry().unwrap();
    assert_eq!(take_all(&mut lanes, due), [(1, vec![11])]);
    lanes.done(1);
    assert_eq!(take_all(&mut lanes, due), [(1, vec![12])]);
}

#[test]
fn what_failed_together_is_retried_together() {
    let mut lanes = Lanes::default();
    let backoff = Backoff::new(Duration::from_secs(3600), Duration::from_secs(3600));
    let start = Instant::now();
    let outage = start + Duration::from_millis(1);
    for key in [1, 2] {
        lanes.push(key, key);
    }
    let now = |key: u32| if key == 1 { start } else { outage };
    for taken in lanes.take(items(9), start, |_| true) {
        lanes.fail(&taken.key, taken.items.into(), now(taken.key), &backoff);
    }
    lanes.retry_failing_since(outage);
    assert_eq!(take_all(&mut lanes, outage), [(2, vec![2])]);
}

#[test]
fn dropped_keys_do_not_come_back() {
    let mut lanes = Lanes::default();
    let (now, backoff) = (Instant::now(), backoff());
    for (key, item) in [(1, 1), (1, 2), (2, 3), (3, 4)] {
        lanes.push(key, item);
    }
    assert_eq!(lanes.take(items(1), now, |_| true).len(), 1);
    lanes.drop_keys(|&key| key != 3);
    assert_eq!(lanes.held(), 2, "one is out, one belongs to key 3");
    lanes.push(1, 5);
    assert_eq!(take_all(&mut lanes, now), [(3, vec![4])]);
    lanes.fail(&1, vec![1], now, &backoff);
    assert_eq!(take_all(&mut lanes, now), [(1, vec![5])]);
}

#[test]
fn a_key_is_taken_out_with_all_behind_it() {
    let mut lanes = Lanes::default();
    let (now, backoff) = (Instant::now(), backoff());
    for (key, item) in [(1, 1), (1, 2), (2, 3)] {
        lanes.push(key, item);
    }
    assert_eq!(lanes.take(items(1), now, |_| true).len(), 1);
    assert_eq!(lanes.remove(&1), [2]);
    assert!(!lanes.contains(&1));
    assert_eq!(lanes.held(), 1);
    assert_eq!(lanes.fail(&1, vec![1], now, &backoff), 0, "it is gone");
    assert_eq!(take_all(&mut lanes, now), [(2, vec![3])]);
}

#[test]
fn a_key_goes_on_without_its_failed_item() {
    let mut lanes = Lanes::default();
    let now = Instant::now();
    for item in [1, 2, 3] {
        lanes.push(9, item);
    }
    assert_eq!(take_all(&mut lanes, now), [(9, vec![1, 2, 3])]);
    lanes.push(9, 4);
    lanes.go_on(&9, vec![3]);
    assert_eq!(lanes.held(), 2);
    assert_eq!(take_all(&mut lanes, now), [(9, vec![3, 4])]);
    lanes.drop_keys(|_| true);
    lanes.go_on(&9, vec![4]);
    assert_eq!(lanes.held(), 0);
    assert!(lanes.lanes.is_empty());
}

#[test]
fn keys_that_are_not_allowed_keep_their_place() {
    let mut lanes = Lanes::default();
    let now = Instant::now();
    for key in [1, 2, 3] {
        lanes.push(key, key);
    }
    let taken = lanes.take(items(9), now, |&key| key == 3);
    assert_eq!(taken.len(), 1);
    assert_eq!(take_all(&mut lanes, now), [(1, vec![1]), (2, vec![2])]);
}

fn take_bytes(lanes: &mut Lanes<u32, u32>, bytes: usize, first: usize) -> Vec<(u32, Vec<u32>)> {
    let quota = Quota {
        items: 9,
        bytes,
        first,
    };
    let taken = lanes.take(quota, Instant::now(), |_| true);
    taken.into_iter().map(key_and_items).collect()
}

#[test]
fn bytes_are_bounded_and_what_is_larger_goes_alone() {
    let mut lanes = Lanes::default();
    for (key, item) in [(1, 4), (1, 5), (2, 100), (3, 6), (1, 7)] {
        lanes.push(key, item);
    }
    assert_eq!(lanes.held_bytes(), 122);
    assert!(
        take_bytes(&mut lanes, 9, 3).is_empty(),
        "no room for the first"
    );
    // 7 more would fit no longer, and nobody behind it is asked.
    assert_eq!(take_bytes(&mut lanes, 10, 10), [(1, vec![4, 5])]);
    lanes.done(1);
    assert_eq!(lanes.held_bytes(), 113);
    // The large one is not overtaken, and takes up all the room.
    assert!(take_bytes(&mut lanes, 10, 10).is_empty());
    assert_eq!(take_bytes(&mut lanes, 10, usize::MAX), [(2, vec![100])]);
    assert_eq!(take_bytes(&mut lanes, 13, 13), [(3, vec![6]), (1, vec![7])]);
    lanes.done(2);
    lanes.done(3);
    assert_eq!(lanes.held_bytes(), 7);
    lanes.done(1);
    assert_eq!(lanes.held_bytes(), 0);
}

#[test]
fn bytes_are_counted_whatever_becomes_of_an_item() {
    let mut lanes = Lanes::default();
    let (now, backoff) = (Instant::now(), backoff());
    for item in [1, 2, 4, 8] {
        lanes.push(1, item);
    }
    lanes.push(2, 16);
    assert_eq!(
        take_all(&mut lanes, now),
        [(1, vec![1, 2, 4, 8]), (2, vec![16])]
    );
    lanes.push(1, 32);
    lanes.fail(&1, vec![2, 4, 8], now, &backoff);
    assert_eq!(lanes.held_bytes(), 62);
    let due = lanes.next_retry().unwrap();
    assert_eq!(take_all(&mut lanes, due), [(1, vec![2])]);
    lanes.go_on(&1, vec![]);
    assert_eq!(lanes.held_bytes(), 60);
    assert_eq!(take_all(&mut lanes, due), [(1, vec![4, 8, 32])]);
    lanes.push(1, 64);
    lanes.drop_keys(|&key| key == 1);
    assert_eq!(lanes.held_bytes(), 60, "three are out");
    lanes.go_on(&1, vec![32]);
    assert_eq!(lanes.held_bytes(), 16);
    lanes.push(2, 128);
    assert_eq!(lanes.remove(&2), [128]);
    assert_eq!(lanes.held_bytes(), 0);
}

/// Random work on many keys: every item is finished exactly once and in its key's order.
#[test]
fn order_and_counts_hold_under_random_work() {
    for seed in 0..20_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = move |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        let mut lanes: Lanes<u64, u64> = Lanes::default();
        let backoff = backoff();
        let mut now = Instant::now();
        let mut out: Vec<Taken<u64, u64>> = Vec::new();
        let mut finished: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let (mut pushed, mut next) = (0, 0);
        while pushed < 2000 || lanes.held() > 0 {
            now += Duration::from_millis(1);
            if pushed < 2000 && below(2) == 0 {
                lanes.push(below(17), next);
                next += 1;
                pushed += 1;
            }
            if below(3) == 0 {
                let quota = Quota {
                    items: 1 + usize::try_from(below(5)).unwrap(),
                    bytes: 10,
                    first: if out.is_empty() { usize::MAX } else { 4 },
                };
                let batch = lanes.take(quota, now, |_| true);
                let sizes = batch.iter().flat_map(|taken| &taken.items);
                let sizes: Vec<usize> = sizes.map(Weighed::bytes).collect();
                assert!(sizes.len() <= quota.items);
                assert!(sizes.first().is_none_or(|&first| first <= quota.first));
                assert!(sizes.iter().sum::<usize>() <= quota.bytes);
                for taken in batch {
                    assert!(out.iter().all(|other| other.key != taken.key));
                    out.push(taken);
                }
            }
            if !out.is_empty() && below(2) == 0 {
                let at = usize::try_from(below(out.len() as u64)).unwrap();
                let Taken { key, mut items } = out.swap_remove(at);
                let good = usize::try_from(below(items.len() as u64 + 1)).unwrap();
                let rest = items.split_off(good);
                finished.entry(key).or_default().extend(items);
                if rest.is_empty() {
                    lanes.done(key);
                } else {
                    lanes.fail(&key, rest.into(), now, &backoff);
                }
            }
        }
        assert_eq!(finished.values().map(Vec::len).sum::<usize>(), 2000);
        assert!(finished.values().all(|items| items.is_sorted()));
        assert!(lanes.lanes.is_empty());
        assert_eq!(lanes.held_bytes(), 0);
    }
}
