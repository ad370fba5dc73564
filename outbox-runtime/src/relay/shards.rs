use std::collections::{BTreeMap, BTreeSet};

use crate::domain::Shard;
use crate::store::{JournalEntry, ShardLease, ShardSet};

/// The shards that this instance owns, and how far each has come.
#[derive(Debug, Default)]
pub(super) struct Shards {
    owned: BTreeMap<Shard, Owned>,
    journal: Option<JournalEntry>,
    /// Whether rows were parked since the positions were stored.
    parked: bool,
}

#[derive(Debug)]
struct Owned {
    epoch: i64,
    /// The position when the shard was claimed: what lies below is published.
    start: i64,
    /// The position in the database.
    stored: i64,
    /// The highest id that was published or parked since the claim.
    done: i64,
    /// Rows that were read and are neither published nor parked.
    unfinished: BTreeSet<i64>,
    /// Messages with the publisher at this moment.
    in_flight: usize,
    /// Nothing new goes to the publisher; the shard is given up once nothing is in flight.
    draining: bool,
}

/// What happened since the positions were stored.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct News {
    pub(super) journal: Option<JournalEntry>,
    parked: bool,
}

impl Shards {
    pub(super) fn len(&self) -> usize {
        self.owned.len()
    }

    pub(super) fn all(&self) -> ShardSet {
        self.owned.keys().copied().collect()
    }

    pub(super) fn draining(&self) -> ShardSet {
        self.which(|shard| shard.draining)
    }

    /// Those to be given up of which nothing is in flight.
    pub(super) fn drained(&self) -> ShardSet {
        self.which(|shard| shard.draining && shard.in_flight == 0)
    }

    pub(super) fn epoch(&self, shard: Shard) -> Option<i64> {
        self.owned.get(&shard).map(|owned| owned.epoch)
    }

    /// Those that are no longer ours, going by all that the database says is ours.
    pub(super) fn lost(&self, leases: &[ShardLease]) -> ShardSet {
        let ours = |shard: Shard, epoch| {
            leases
                .iter()
                .any(|lease| lease.shard == shard && lease.epoch == epoch)
        };
        let all = self.owned.iter();
        all.filter(|(shard, owned)| !ours(**shard, owned.epoch))
            .map(|(&shard, _)| shard)
            .collect()
    }

    pub(super) fn add(&mut self, lease: ShardLease) {
        self.owned.insert(
            lease.shard,
            Owned {
                epoch: lease.epoch,
                start: lease.position,
                stored: lease.position,
                done: lease.position,
                unfinished: BTreeSet::new(),
                in_flight: 0,
                draining: false,
            },
        );
    }

    pub(super) fn remove(&mut self, gone: ShardSet) {
        self.owned.retain(|shard, _| !gone.contains(*shard));
    }

    /// Keeps `share` shards and sets out to give up the others, those with the least to do first.
    pub(super) fn share(&mut self, share: usize) {
        let mut by_work: Vec<_> = self
            .owned
            .iter()
            .map(|(&shard, owned)| (owned.draining, owned.unfinished.len(), shard))
            .collect();
        by_work.sort_unstable_by_key(|&(draining, work, shard)| (!draining, work, shard));
        let surplus = by_work.len().saturating_sub(share);
        for (place, (_, _, shard)) in by_work.into_iter().enumerate() {
            if let Some(owned) = self.owned.get_mut(&shard) {
                owned.draining = place < surplus;
            }
        }
    }

    /// A row was read. Says whether it is still to be published.
    pub(super) fn read(&mut self, shard: Shard, id: i64) -> bool {
        self.owned
            .get_mut(&shard)
            .is_some_and(|owned| id > owned.start && owned.unfinished.insert(id))
    }

    /// A message goes to the publisher.
    pub(super) fn start(&mut self, shard: Shard, epoch: i64) {
        if let Some(owned) = self.of(shard, epoch) {
            owned.in_flight += 1;
        }
    }

    /// A message came back from the publisher.
    pub(super) fn end(&mut self, shard: Shard, epoch: i64, id: i64, published: bool) {
        let Some(owned) = self.of(shard, epoch) else {
            return;
        };
        owned.in_flight = owned.in_flight.saturating_sub(1);
        if !published {
            return;
        }
        owned.unfinished.remove(&id);
        owned.done = owned.done.max(id);
        let entry = self.journal.get_or_insert(JournalEntry {
            from: id,
            to: id,
            messages: 0,
        });
        entry.from = entry.from.min(id);
        entry.to = entry.to.max(id);
        entry.messages += 1;
    }

    /// A row is parked: that is committed.
    pub(super) fn parked(&mut self, shard: Shard, epoch: i64, id: i64) {
        if let Some(owned) = self.of(shard, epoch) {
            owned.unfinished.remove(&id);
            owned.done = owned.done.max(id);
            self.parked = true;
        }
    }

    /// Whether something was published or parked that the stored positions don't say.
    pub(super) fn have_news(&self) -> bool {
        self.journal.is_some() || self.parked
    }

    /// The positions to store: of the shards that have got something done, or of all that can move.
    /// `settled` says up to where all rows of a shard were read.
    pub(super) fn positions(
        &self,
        of_all: bool,
        settled: impl Fn(Shard) -> Option<i64>,
    ) -> Vec<ShardLease> {
        let mut moved = Vec::new();
        for (&shard, owned) in &self.owned {
            if !of_all && owned.done <= owned.stored {
                continue;
            }
            let read = settled(shard).unwrap_or(owned.stored);
            let position = owned
                .unfinished
                .first()
                .map_or(read, |first| read.min(first - 1));
            if position > owned.stored {
                moved.push(ShardLease {
                    shard,
                    epoch: owned.epoch,
                    position,
                });
            }
        }
        moved
    }

    /// These shards as the database has them, for giving them up.
    pub(super) fn leases(&self, of: ShardSet) -> Vec<ShardLease> {
        self.owned
            .iter()
            .filter(|(shard, _)| of.contains(**shard))
            .map(|(&shard, owned)| ShardLease {
                shard,
                epoch: owned.epoch,
                position: owned.stored,
            })
            .collect()
    }

    /// Takes what to enter into the journal, and what else the stored positions don't say.
    pub(super) fn take_news(&mut self) -> News {
        News {
            journal: self.journal.take(),
            parked: std::mem::take(&mut self.parked),
        }
    }

    /// Takes back what could not be stored.
    pub(super) fn take_back(&mut self, news: News) {
        self.parked |= news.parked;
        let Some(old) = news.journal else {
            return;
        };
        let entry = self
            .journal
            .get_or_insert(JournalEntry { messages: 0, ..old });
        entry.from = entry.from.min(old.from);
        entry.to = entry.to.max(old.to);
        entry.messages += old.messages;
    }

    /// The positions are stored.
    pub(super) fn stored(&mut self, positions: &[ShardLease]) {
        for lease in positions {
            if let Some(owned) = self.of(lease.shard, lease.epoch) {
                owned.stored = owned.stored.max(lease.position);
            }
        }
    }

    fn of(&mut self, shard: Shard, epoch: i64) -> Option<&mut Owned> {
        self.owned
            .get_mut(&shard)
            .filter(|owned| owned.epoch == epoch)
    }

    fn which(&self, wanted: impl Fn(&Owned) -> bool) -> ShardSet {
        let all = self.owned.iter();
        all.filter(|(_, owned)| wanted(owned))
            .map(|(&shard, _)| shard)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(shard: Shard, epoch: i64, position: i64) -> ShardLease {
        ShardLease {
            shard,
            epoch,
            position,
        }
    }

    fn publish(shards: &mut Shards, shard: Shard, epoch: i64, id: i64) {
        shards.start(shard, epoch);
        shards.end(shard, epoch, id, true);
    }

    #[test]
    fn a_position_stands_before_the_first_unfinished_row() {
        let mut shards = Shards::default();
        shards.add(lease(1, 7, 10));
        assert!(!shards.read(1, 10), "published before the claim");
        for id in [11, 12, 13] {
            assert!(shards.read(1, id));
        }
        assert!(!shards.read(1, 12), "read already");
        publish(&mut shards, 1, 7, 12);
        assert!(shards.positions(false, |_| Some(20)).is_empty());
        publish(&mut shards, 1, 7, 11);
        assert_eq!(shards.positions(false, |_| Some(20)), [lease(1, 7, 12)]);
        assert_eq!(
            shards.positions(false, |_| Some(11)),
            [lease(1, 7, 11)],
            "a gap above 11"
        );
        publish(&mut shards, 1, 7, 13);
        let positions = shards.positions(false, |_| Some(20));
        assert_eq!(positions, [lease(1, 7, 20)]);
        let entry = |news: News| {
            let entry = news.journal?;
            Some((entry.from, entry.to, entry.messages))
        };
        let news = shards.take_news();
        assert_eq!(entry(news), Some((11, 13, 3)));
        assert!(!shards.have_news(), "it is being stored");
        assert!(shards.read(1, 14));
        publish(&mut shards, 1, 7, 14);
        shards.take_back(news);
        assert_eq!(
            entry(shards.take_news()),
            Some((11, 14, 4)),
            "it was not stored"
        );
        shards.stored(&positions);
        assert!(!shards.have_news());
        assert!(
            shards.positions(false, |_| Some(30)).is_empty(),
            "no write without news"
        );
        assert_eq!(shards.positions(true, |_| Some(30)), [lease(1, 7, 30)]);
    }

    #[test]
    fn a_position_moves_past_what_is_parked() {
        let mut shards = Shards::default();
        shards.add(lease(1, 7, 0));
        assert!(shards.read(1, 5) && shards.read(1, 6));
        shards.parked(1, 6, 5);
        assert!(!shards.have_news(), "an earlier epoch");
        shards.parked(1, 7, 5);
        assert!(shards.have_news());
        let positions = shards.positions(false, |_| Some(9));
        assert_eq!(positions, [lease(1, 7, 5)]);
        assert!(
            shards.take_news().journal.is_none(),
            "nothing was published"
        );
        shards.stored(&positions);
        assert!(!shards.have_news());
    }

    #[test]
    fn what_comes_back_for_an_earlier_epoch_counts_for_nothing() {
        let mut shards = Shards::default();
        shards.add(lease(1, 7, 0));
        shards.read(1, 5);
        shards.start(1, 7);
        assert_eq!(shards.lost(&[lease(1, 8, 0)]), shards.all());
        shards.remove(shards.all());
        shards.add(lease(1, 8, 0));
        shards.read(1, 5);
        shards.end(1, 7, 5, true);
        assert!(shards.positions(true, |_| Some(4)) == [lease(1, 8, 4)]);
        assert!(!shards.have_news());
    }

    #[test]
    fn a_surplus_is_drained_before_it_is_given_up() {
        let mut shards = Shards::default();
        for shard in 0..4 {
            shards.add(lease(shard, 1, 0));
        }
        shards.read(0, 1);
        shards.read(2, 2);
        shards.start(2, 1);
        shards.share(1);
        let draining: Vec<_> = shards.draining().iter().collect();
        assert_eq!(
            draining,
            [0, 1, 3],
            "the one with the most to do is kept last"
        );
        shards.share(2);
        assert_eq!(shards.draining().len(), 2);
        shards.share(0);
        assert!(!shards.drained().contains(2));
        shards.end(2, 1, 2, false);
        assert!(shards.drained().contains(2));
        shards.share(9);
        assert!(shards.draining().is_empty());
    }
}
