use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::store::{LogContent, LogRead, Passed, Snapshot, Writers};

fn row(id: i64, shard: Shard) -> LogRow {
    LogRow {
        id,
        shard,
        content: LogContent::NotRead,
    }
}

fn shards(all: &[Shard]) -> ShardSet {
    all.iter().copied().collect()
}

/// A log with transactions that commit in any order, and a relay's way of reading it.
#[derive(Default)]
struct Log {
    visible: BTreeMap<i64, Shard>,
    /// Ids of each open transaction.
    open: BTreeMap<String, Vec<(i64, Shard)>>,
    /// The number of each open transaction, and the next one.
    numbers: BTreeMap<String, u32>,
    next: u32,
    last: i64,
    rests: usize,
    reads: usize,
}

impl Log {
    fn write(&mut self, transaction: &str, shard: Shard) {
        if !self.open.contains_key(transaction) {
            self.next += 1;
            self.numbers.insert(transaction.to_owned(), self.next);
        }
        self.last += 1;
        let rows = self.open.entry(transaction.to_owned()).or_default();
        rows.push((self.last, shard));
    }

    fn commit(&mut self, transaction: &str) {
        self.visible
            .extend(self.open.remove(transaction).unwrap_or_default());
    }

    fn read(&mut self, scans: &mut Scans, index: usize, limit: usize) -> Answer {
        let mut question = scans.question(index).unwrap();
        let snapshot = self.snapshot();
        if question.resting.may_rest(&snapshot) {
            self.rests += usize::from(!question.resting.is_empty());
        } else {
            scans.ask_for_all(index, &mut question);
        }
        let asked = |id: &i64| {
            let in_gap = question
                .gaps
                .iter()
                .any(|&(first, last)| (first..=last).contains(id));
            in_gap || (*id > question.after && *id <= question.up_to)
        };
        let found = self.visible.iter().filter(|(id, _)| asked(id));
        let rows: Vec<LogRow> = found
            .take(limit)
            .map(|(&id, &shard)| row(id, shard))
            .collect();
        let mut read = LogRead {
            is_cut: rows.len() >= limit,
            no_room_for: None,
            snapshot: None,
            passed: None,
            rows,
        };
        self.reads += 1;
        if question.gaps.is_empty() && question.resting.is_empty() && self.reads.is_multiple_of(2) {
            read = without_others(read, &question);
        }
        scans.answer(index, &question, read, false)
    }

    fn snapshot(&self) -> Snapshot {
        let open = self.open.keys().map(|name| self.numbers[name].to_string());
        let list: Vec<String> = open.collect();
        Snapshot::parse(&format!("0:{}:{}", self.next + 1, list.join(","))).unwrap()
    }

    fn observe(&self, scans: &mut Scans) {
        let numbered = |name: &String| (name.clone(), [self.numbers[name]].into());
        let writers = Writers {
            in_flight: self.open.keys().map(numbered).collect(),
        };
        for gaps in scans.gaps_mut() {
            gaps.observe(&writers);
        }
    }
}

/// The same read as a database answers it that leaves out the rows of other shards.
fn without_others(mut read: LogRead, question: &Question) -> LogRead {
    let mut before = question.after;
    let mut missing = Vec::new();
    for row in &read.rows {
        if row.id > before + 1 {
            missing.push((before + 1, row.id - 1));
        }
        before = row.id;
    }
    read.passed = read.rows.last().map(|row| Passed {
        last: row.id,
        missing,
    });
    read.rows.retain(|row| question.shards.contains(row.shard));
    read
}

fn ids(answer: &Answer) -> Vec<i64> {
    answer.news.iter().map(|row| row.id).collect()
}

#[test]
fn a_lower_id_that_commits_later_is_found_and_holds_the_position_only() {
    let mut log = Log::default();
    let mut scans = Scans::default();
    scans.add(shards(&[1]), 0);
    log.write("slow", 1);
    log.write("fast", 1);
    log.commit("fast");
    assert_eq!(
        ids(&log.read(&mut scans, 0, 10)),
        [2],
        "what is there is published at once"
    );
    log.observe(&mut scans);
    assert_eq!(scans.settled(1), Some(0));
    log.commit("slow");
    assert_eq!(ids(&log.read(&mut scans, 0, 10)), [1]);
    assert_eq!(scans.settled(1), Some(2));
    assert!(!scans.has_gaps());
}

#[test]
fn a_rolled_back_id_settles_with_the_next_read() {
    let mut log = Log::default();
    let mut scans = Scans::default();
    scans.add(shards(&[1]), 0);
    log.write("bad", 1);
    log.write("good", 1);
    log.open.remove("bad");
    log.commit("good");
    log.read(&mut scans, 0, 10);
    log.observe(&mut scans);
    assert!(scans.can_settle());
    log.read(&mut scans, 0, 10);
    assert_eq!(scans.settled(1), Some(2));
}

#[test]
fn a_later_claim_catches_up_and_joins() {
    let mut log = Log::default();
    let mut scans = Scans::default();
    for n in 0..10 {
        log.write("t", n % 2);
    }
    log.commit("t");
    scans.add(shards(&[0]), 0);
    assert_eq!(ids(&log.read(&mut scans, 0, 100)), [1, 3, 5, 7, 9]);
    scans.add(shards(&[1]), 3);
    assert_eq!(scans.len(), 2);
    assert_eq!(ids(&log.read(&mut scans, 0, 4)), [4, 6]);
    assert_eq!(ids(&log.read(&mut scans, 0, 4)), [8, 10]);
    assert_eq!(scans.len(), 1);
    log.write("t", 1);
    log.commit("t");
    assert_eq!(ids(&log.read(&mut scans, 0, 4)), [11]);
    scans.drop_shards(shards(&[0, 1]));
    assert_eq!(scans.len(), 0);
}

#[test]
fn rows_deleted_below_the_other_cursor_do_not_stop_a_claim() {
    let mut log = Log::default();
    let mut scans = Scans::default();
    scans.add(shards(&[0]), 100);
    scans.add(shards(&[1]), 0);
    log.read(&mut scans, 0, 4);
    assert_eq!(scans.len(), 1);
    log.observe(&mut scans);
    log.read(&mut scans, 0, 4);
    assert_eq!((scans.settled(0), scans.settled(1)), (Some(100), Some(100)));
}

/// Transactions of random length and shards that come and go: every committed row is news once to
/// each claim that has not got it yet, and rows of one shard come in an order that commits allow.
#[test]
fn nothing_is_lost_or_seen_twice_in_any_order_of_commits() {
    let mut rests = 0;
    for seed in 1..=12_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = move |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        let mut log = Log::default();
        let mut scans = Scans::default();
        let mut seen: BTreeSet<i64> = BTreeSet::new();
        let mut rolled_back: BTreeSet<i64> = BTreeSet::new();
        let mut owned = shards(&[0]);
        scans.add(owned, 0);
        for step in 0..1500 {
            let name = format!("t{}", below(6));
            match below(10) {
                0..=3 => log.write(&name, Shard::try_from(below(3)).unwrap()),
                4 => log.commit(&name),
                5 if below(3) == 0 => {
                    let rows = log.open.remove(&name).unwrap_or_default();
                    rolled_back.extend(rows.iter().map(|row| row.0));
                }
                6 if step % 5 == 0 => {
                    let shard = Shard::try_from(1 + below(2)).unwrap();
                    let one = shards(&[shard]);
                    if owned.contains(shard) {
                        // Given up at its settled position; what lies above comes again.
                        let position = scans.settled(shard).unwrap();
                        scans.drop_shards(one);
                        owned = owned.without(one);
                        seen.retain(|id| *id <= position || log.visible.get(id) != Some(&shard));
                    } else {
                        let kept = seen.iter().filter(|id| log.visible.get(id) == Some(&shard));
                        let position = kept.max().copied().unwrap_or(0);
                        scans.add(one, position);
                        owned = owned.with(one);
                    }
                }
                _ => {
                    for index in (0..scans.len()).rev() {
                        let limit = 1 + usize::try_from(below(8)).unwrap();
                        for row in log.read(&mut scans, index, limit).news {
                            assert!(seen.insert(row.id), "seed {seed}: {} came twice", row.id);
                        }
                    }
                    if below(3) > 0 {
                        log.observe(&mut scans);
                    }
                }
            }
            for shard in owned.iter() {
                let settled = scans.settled(shard).unwrap();
                let open = log.open.values().flatten();
                let lost = open
                    .chain([])
                    .filter(|row| row.1 == shard && row.0 <= settled)
                    .count();
                assert_eq!(lost, 0, "seed {seed}: {settled} is settled too early");
                let missed = log
                    .visible
                    .range(..=settled)
                    .filter(|(id, of)| **of == shard && !seen.contains(id));
                assert_eq!(
                    missed.count(),
                    0,
                    "seed {seed}: a row below {settled} was not seen"
                );
            }
        }
        let names: Vec<String> = log.open.keys().cloned().collect();
        for name in names {
            log.commit(&name);
        }
        for _ in 0..log.last * 2 {
            for index in (0..scans.len()).rev() {
                seen.extend(log.read(&mut scans, index, 5).news.iter().map(|row| row.id));
            }
            log.observe(&mut scans);
        }
        let expected = log
            .visible
            .iter()
            .filter(|(_, shard)| owned.contains(**shard));
        let got: BTreeSet<i64> = seen
            .iter()
            .copied()
            .filter(|id| owned.contains(log.visible[id]))
            .collect();
        assert_eq!(got, expected.map(|(&id, _)| id).collect(), "seed {seed}");
        assert!(rolled_back.is_disjoint(&seen));
        assert!(scans.len() == 1 && !scans.has_gaps());
        rests += log.rests;
    }
    assert!(rests > 50, "large gaps were left out {rests} times");
}
