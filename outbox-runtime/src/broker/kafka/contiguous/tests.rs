use super::*;

fn with(offsets: impl IntoIterator<Item = i64>) -> Contiguous {
    let mut work = Contiguous::default();
    offsets.into_iter().for_each(|offset| work.take(offset));
    work
}

#[test]
fn nothing_is_known_before_the_first_message() {
    assert_eq!(Contiguous::default().position(), None);
    assert_eq!(Contiguous::starting_at(7).position(), Some(7));
}

#[test]
fn the_position_goes_to_the_first_unfinished_one_in_any_order_of_finishing() {
    // All orders of five, by Heap's algorithm.
    fn orders(k: usize, offsets: &mut [i64; 5], see: &mut impl FnMut([i64; 5])) {
        if k <= 1 {
            return see(*offsets);
        }
        for i in 0..k {
            orders(k - 1, offsets, see);
            let other = if k.is_multiple_of(2) { i } else { 0 };
            offsets.swap(other, k - 1);
        }
    }
    let mut count = 0;
    orders(5, &mut [10, 11, 12, 13, 14], &mut |order| {
        count += 1;
        let mut work = with(10..15);
        let mut left: BTreeSet<i64> = (10..15).collect();
        for offset in order {
            assert!(work.finish(offset));
            left.remove(&offset);
            assert_eq!(work.position(), Some(left.first().copied().unwrap_or(15)));
        }
    });
    assert_eq!(count, 120);
}

#[test]
fn offsets_with_gaps_are_contiguous_where_nothing_is_between() {
    let mut work = with([3, 9, 20]);
    assert!(work.finish(3));
    assert_eq!(work.position(), Some(9));
    assert!(work.finish(9));
    assert_eq!(work.position(), Some(20));
    assert!(work.finish(20));
    assert_eq!(work.position(), Some(21));
}

#[test]
fn a_message_that_nobody_wants_holds_nothing_up() {
    let mut work = Contiguous::default();
    work.pass(4);
    assert_eq!(work.position(), Some(5));
    work.take(5);
    work.pass(6);
    assert_eq!(work.position(), Some(5));
    assert!(work.finish(5));
    assert_eq!(work.position(), Some(7));
}

#[test]
fn what_was_not_taken_or_is_finished_does_not_count() {
    let mut work = with([1, 2]);
    assert!(!work.finish(3));
    assert!(work.finish(1));
    assert!(!work.finish(1));
    assert_eq!(work.position(), Some(2));
}

#[test]
fn a_message_that_comes_twice_is_unfinished_until_it_is_finished() {
    let mut work = with([1, 2, 1]);
    assert_eq!((work.position(), work.next()), (Some(1), Some(3)));
    assert!(work.finish(1));
    assert!(!work.finish(1));
    assert_eq!(work.position(), Some(2));
}

#[test]
fn a_restart_takes_again_what_was_unfinished() {
    let mut before = with(0..10);
    (0..10)
        .filter(|offset| *offset != 4)
        .for_each(|offset| assert!(before.finish(offset)));
    let position = before.position().unwrap_or_default();
    assert_eq!(position, 4);
    let mut after = Contiguous::starting_at(position);
    assert!(after.is_behind(3) && !after.is_behind(4));
    (4..10).for_each(|offset| after.take(offset));
    (4..10).for_each(|offset| assert!(after.finish(offset)));
    assert_eq!(after.position(), Some(10));
}
