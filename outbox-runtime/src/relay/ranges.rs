use std::collections::BTreeMap;

/// A set of ids as ranges: small where ids lie together, whatever their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    /// First id of each range to its last; ranges neither overlap nor touch.
    ranges: BTreeMap<i64, i64>,
}

impl Ranges {
    /// Adds all ids from `first` to `last`.
    pub(super) fn insert(&mut self, first: i64, last: i64) {
        if first > last {
            return;
        }
        let (mut first, mut last) = (first, last);
        // Swallow every range that overlaps or touches, from the right to the left.
        while let Some((&low, &high)) = self.ranges.range(..=last.saturating_add(1)).next_back()
            && high >= first.saturating_sub(1)
        {
            first = first.min(low);
            last = last.max(high);
            self.ranges.remove(&low);
        }
        self.ranges.insert(first, last);
    }

    /// Adds all ids of `other`.
    pub(super) fn extend(&mut self, other: &Self) {
        for (first, last) in other.iter() {
            self.insert(first, last);
        }
    }

    /// Takes one id out; says whether it was in.
    pub(super) fn remove(&mut self, id: i64) -> bool {
        let Some((&first, &last)) = self.ranges.range(..=id).next_back() else {
            return false;
        };
        if id > last {
            return false;
        }
        self.ranges.remove(&first);
        if first < id {
            self.ranges.insert(first, id - 1);
        }
        if id < last {
            self.ranges.insert(id + 1, last);
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges there are.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The lowest id.
    pub(super) fn first(&self) -> Option<i64> {
        self.ranges.keys().next().copied()
    }

    /// The highest id.
    pub(super) fn last(&self) -> Option<i64> {
        self.ranges.values().next_back().copied()
    }

    /// The ranges in order, both ends included.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.ranges.iter().map(|(&first, &last)| (first, last))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ids(ranges: &Ranges) -> BTreeSet<i64> {
        ranges
            .iter()
            .flat_map(|(first, last)| first..=last)
            .collect()
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        ranges.insert(5, 6);
        ranges.insert(1, 2);
        ranges.insert(9, 8);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(1, 2), (5, 6)]);
        ranges.insert(3, 4);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(1, 6)]);
        ranges.insert(i64::MAX, i64::MAX);
        assert_eq!((ranges.first(), ranges.last()), (Some(1), Some(i64::MAX)));
    }

    #[test]
    fn behaves_like_a_set_of_ids() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut below = move |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            i64::try_from(random % n).unwrap()
        };
        let mut ranges = Ranges::default();
        let mut set = BTreeSet::new();
        for _ in 0..5000 {
            if below(3) == 0 {
                let first = below(300);
                let last = first + below(8) - 1;
                ranges.insert(first, last);
                set.extend(first..=last);
            } else {
                let id = below(310);
                assert_eq!(ranges.remove(id), set.remove(&id));
            }
            assert_eq!(ids(&ranges), set);
            let touching = ranges
                .iter()
                .zip(ranges.iter().skip(1))
                .any(|(a, b)| a.1 + 1 >= b.0);
            assert!(!touching, "{ranges:?}");
            assert_eq!(ranges.is_empty(), set.is_empty());
        }
    }
}
