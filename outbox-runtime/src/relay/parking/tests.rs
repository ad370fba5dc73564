#![allow(clippy::unwrap_used)]

use super::*;

fn key(lane: &str) -> Key {
    Key {
        shard: 1,
        lane: lane.into(),
    }
}

fn parked(rows: i64, published: &[(&str, i64)]) -> Parked {
    let mut parked = Parked::default();
    for id in 0..rows {
        parked.wait_behind(key("a"), 1, id);
    }
    for (lane, messages) in published {
        let taken: Vec<_> = (0..*messages).map(|id| (id, 1)).collect();
        parked.published(&key(lane), &taken);
    }
    parked
}

#[test]
fn a_piece_has_the_first_rows_and_what_became_of_lanes_comes_last() {
    let mut parked = parked(600, &[("a", 3)]);
    for expected in [250, 250] {
        let piece = parked.next_piece();
        assert_eq!((piece.rows, piece.lanes.len()), (expected, 0));
        parked.stored(&piece, Vec::new());
        assert!(!parked.is_stored());
    }
    assert_eq!(parked.to_park.first().unwrap().id, 500);
    let piece = parked.next_piece();
    assert_eq!((piece.rows, piece.lanes.len()), (100, 1));
    parked.stored(&piece, Vec::new());
    assert!(parked.is_stored());
}

#[test]
fn a_piece_is_smaller_after_a_failure_and_never_empty() {
    let mut parked = parked(0, &[("a", 40), ("b", 40), ("c", 40)]);
    assert_eq!(parked.next_piece().lanes.len(), 3);
    for _ in 0..5 {
        parked.shrink_piece();
    }
    assert_eq!(parked.piece, 1);
    for _ in 0..3 {
        let piece = parked.next_piece();
        assert_eq!(piece.lanes.len(), 1);
        parked.stored(&piece, Vec::new());
    }
    assert!(parked.is_stored());
    for _ in 0..20 {
        parked.grow_piece();
    }
    assert_eq!(parked.piece, LARGEST_PIECE);
}

#[test]
fn a_lane_is_forgotten_only_when_it_is_said_to_be_empty() {
    let mut parked = parked(0, &[("a", 1), ("b", 1)]);
    parked.add(vec![lane("a"), lane("b")]);
    let piece = parked.next_piece();
    parked.stored(&piece, vec![lane("a")]);
    assert!(!parked.holds(&key("a")) && parked.holds(&key("b")));
}

fn lane(lane: &str) -> ParkedLane {
    ParkedLane {
        shard: 1,
        lane: lane.to_owned(),
    }
}
