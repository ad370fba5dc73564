use super::*;

fn writers(names: &[&str]) -> Writers {
    Writers {
        in_flight: names
            .iter()
            .map(|&name| (name.to_owned(), BTreeSet::new()))
            .collect(),
    }
}

/// A read stepped over `ranges`, and then these were seen writing.
fn step_over(gaps: &mut Gaps, ranges: &[(i64, i64)], all: &[Shard], names: &[&str]) {
    gaps.open(ids(ranges), shards(all));
    gaps.observe(&writers(names));
}

fn ids(ranges: &[(i64, i64)]) -> Ranges {
    let mut set = Ranges::default();
    for &(first, last) in ranges {
        set.insert(first, last);
    }
    set
}

fn shards(all: &[Shard]) -> ShardSet {
    all.iter().copied().collect()
}

#[test]
fn a_gap_stays_open_as_long_as_its_writer() {
    let mut gaps = Gaps::default();
    step_over(&mut gaps, &[(5, 5)], &[1], &["3/7", "4/1"]);
    for _ in 0..1000 {
        gaps.settle(i64::MAX);
        gaps.observe(&writers(&["3/7", "9/9"]));
        assert_eq!(gaps.settled(1), Some(4));
    }
    assert_eq!(gaps.settled(2), None);
    assert!(gaps.found(5, 1), "it committed after all");
    assert!(gaps.is_empty());
}

#[test]
fn a_gap_settles_only_with_a_read_after_its_writers_ended() {
    let mut gaps = Gaps::default();
    step_over(&mut gaps, &[(5, 6)], &[1], &["3/7"]);
    gaps.observe(&writers(&[]));
    assert!(gaps.can_settle());
    assert_eq!(gaps.settled(1), Some(4), "the read is still to come");
    gaps.settle(5);
    assert_eq!(
        gaps.settled(1),
        Some(4),
        "the read was cut off within the gap"
    );
    gaps.settle(6);
    assert!(gaps.is_empty());
}

#[test]
fn a_new_gap_without_writers_needs_one_more_read() {
    let mut gaps = Gaps::default();
    step_over(&mut gaps, &[(5, 5)], &[1], &[]);
    assert_eq!((gaps.settled(1), gaps.can_settle()), (Some(4), true));
    gaps.settle(9);
    assert!(gaps.is_empty());
}

#[test]
fn a_prepared_transaction_takes_over_from_the_one_that_prepared_it() {
    let mut gaps = Gaps::default();
    step_over(&mut gaps, &[(5, 5)], &[1], &["3/7"]);
    gaps.observe(&writers(&["-1/800"]));
    assert!(!gaps.can_settle());
    // One that comes later has nothing to do with it.
    gaps.observe(&writers(&["-1/900"]));
    gaps.observe(&writers(&["-1/901"]));
    gaps.observe(&writers(&[]));
    assert!(gaps.can_settle());
}

#[test]
fn a_gap_whose_writers_were_not_asked_for_yet_stays_open() {
    let mut gaps = Gaps::default();
    gaps.open(ids(&[(5, 5)]), shards(&[1]));
    gaps.settle(i64::MAX);
    assert_eq!((gaps.settled(1), gaps.can_settle()), (Some(4), false));
}

#[test]
fn one_long_transaction_leaves_one_generation() {
    let mut gaps = Gaps::default();
    for n in 0..10_000 {
        let short = format!("5/{n}");
        step_over(&mut gaps, &[(n * 10, n * 10)], &[1], &["3/7", &short]);
        gaps.settle(i64::MAX);
        assert!(gaps.generations.len() <= 2);
    }
    gaps.observe(&writers(&["3/7"]));
    assert_eq!(gaps.generations.len(), 1);
}

#[test]
fn a_row_is_news_only_to_the_shards_that_miss_it() {
    let mut gaps = Gaps::default();
    let mut other = Gaps::default();
    step_over(&mut gaps, &[(5, 9)], &[1, 2], &["3/7"]);
    step_over(&mut other, &[(7, 9)], &[3], &["3/7"]);
    gaps.merge(other);
    assert!(!gaps.found(5, 3), "shard 3 saw that row before");
    assert!(gaps.found(7, 3));
    assert!(gaps.found(8, 1));
    assert!(!gaps.found(9, 4));
    gaps.drop_shards(shards(&[1, 2]));
    assert!(gaps.is_empty());
}

#[test]
fn many_gaps_of_a_known_transaction_are_left_out_while_it_is_in_progress() {
    let mut gaps = Gaps::default();
    let numbered = |xids: &[Xid]| Writers {
        in_flight: [("3/7".to_owned(), xids.iter().copied().collect())].into(),
    };
    gaps.open(ids(&[(1, 1), (3, 3), (5, 5)]), shards(&[1]));
    assert_eq!(
        gaps.ids().0,
        gaps.all_ids(),
        "its writers are not known yet"
    );
    gaps.observe(&numbered(&[]));
    assert_eq!(gaps.ids().0, gaps.all_ids(), "its writer has no number yet");
    gaps.observe(&numbered(&[90, 92]));
    let (asked, resting) = gaps.ids();
    assert!(asked.is_empty() && !resting.is_empty());
    let rests = |text: &str| resting.may_rest(&Snapshot::parse(text).unwrap());
    assert!(rests("90:95:90"));
    assert!(!rests("95:95:"));
    gaps.observe(&writers(&[]));
    assert_eq!(gaps.ids().0, gaps.all_ids(), "the last read asks for all");
}
