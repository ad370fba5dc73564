use std::collections::{BTreeMap, BTreeSet};

/// The number of a transaction, as locks name it.
pub type Xid = u32;

/// The transactions that may still add rows with ids below those seen so far.
#[derive(Debug, Clone, Default)]
pub struct Writers {
    /// The name of each, never used for two transactions at a time, with its own number and those
    /// of its savepoints, as far as it has any.
    pub in_flight: BTreeMap<String, BTreeSet<Xid>>,
}

impl Writers {
    /// Those that belong to no session: a transaction that is prepared for a two-phase commit can
    /// take such a name, and its former one is then gone.
    pub fn prepared(&self) -> impl Iterator<Item = (&String, &BTreeSet<Xid>)> {
        self.in_flight
            .iter()
            .filter(|(name, _)| Self::is_prepared(name))
    }

    /// Whether the name is one of a transaction without a session.
    pub fn is_prepared(name: &str) -> bool {
        name.starts_with("-1/")
    }
}

/// Which transactions a read did not see because they had not ended when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The first number that was not given out yet.
    next: u64,
    in_progress: BTreeSet<u64>,
}

impl Snapshot {
    /// Reads `xmin:xmax:xip,xip,...`, the text of PostgreSQL's `pg_snapshot`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let _lowest = parts.next()?;
        let next = parts.next()?.parse().ok()?;
        let listed = parts.next()?.split(',').filter(|xid| !xid.is_empty());
        Some(Self {
            next,
            in_progress: listed.map(|xid| xid.parse().ok()).collect::<Option<_>>()?,
        })
    }

    /// Whether the transaction had not ended. A savepoint's number gives `false`.
    pub fn is_in_progress(&self, xid: Xid) -> bool {
        // Locks carry the lower 32 bits; all that are alive lie within 2^31 of the next.
        let next_bits = self.next & u64::from(u32::MAX);
        let ahead = xid.wrapping_sub(u32::try_from(next_bits).unwrap_or_default());
        if ahead < 1 << 31 {
            return true;
        }
        let behind = u64::from(ahead.wrapping_neg());
        let full = self.next.checked_sub(behind);
        full.is_some_and(|full| self.in_progress.contains(&full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_knows_who_had_not_ended() {
        let snapshot = Snapshot::parse("95:100:95,98").unwrap();
        let open = |xid| snapshot.is_in_progress(xid);
        assert!(open(95) && open(98));
        assert!(!open(94) && !open(96) && !open(99));
        assert!(open(100) && open(1_000), "given out later");
        assert!(!Snapshot::parse("7:7:").unwrap().is_in_progress(6));
        for bad in ["", "1:2", "1:x:", "1:9:a"] {
            assert_eq!(Snapshot::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_that_have_wrapped_around_are_told_apart() {
        let wrap = 1_u64 << 32;
        let text = format!("{}:{}:{}", wrap - 2, wrap + 5, wrap - 2);
        let snapshot = Snapshot::parse(&text).unwrap();
        assert!(snapshot.is_in_progress(u32::MAX - 1));
        assert!(!snapshot.is_in_progress(u32::MAX));
        assert!(!snapshot.is_in_progress(4));
        assert!(snapshot.is_in_progress(5));
    }
}
