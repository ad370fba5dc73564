use std::collections::{BTreeMap, BTreeSet};

use super::ranges::Ranges;
use crate::domain::Shard;
use crate::store::{ShardSet, Snapshot, Writers, Xid};

/// A generation of more ranges than this is left out of reads where that is safe.
const MANY: usize = if cfg!(test) { 2 } else { 200 };

/// The ids that a cursor stepped over because no row was visible there yet.
///
/// Gaps that were seen together form a generation: it waits for the same writers and is settled as
/// a whole. The proof is in the [module's documentation](super).
#[derive(Debug, Default)]
pub(super) struct Gaps {
    generations: Vec<Generation>,
}

#[derive(Debug)]
struct Generation {
    ids: Ranges,
    /// The shards whose rows are still to be found here; other shards' rows only close the gap.
    shards: ShardSet,
    /// Transactions that may still fill the gap; `None` before they were asked for. Once this is
    /// empty, one more read settles the gap.
    remaining: Option<BTreeMap<String, BTreeSet<Xid>>>,
}

impl Gaps {
    pub(super) fn is_empty(&self) -> bool {
        self.generations.is_empty()
    }

    /// The missing ids that the next read has to ask for, and who may fill the others.
    ///
    /// A generation that waits for a long transaction can become large. It is left out as long as
    /// only transactions with numbers can fill it; whether the read may go without it shows
    /// afterwards, by [`Resting::may_rest`].
    pub(super) fn ids(&self) -> (Ranges, Resting) {
        let mut ids = Ranges::default();
        let mut resting = Resting::default();
        for generation in &self.generations {
            match generation.resting_on() {
                Some(remaining) => resting.writers.extend(remaining.values().cloned()),
                None => ids.extend(&generation.ids),
            }
        }
        (ids, resting)
    }

    /// All missing ids.
    pub(super) fn all_ids(&self) -> Ranges {
        let mut ids = Ranges::default();
        for generation in &self.generations {
            ids.extend(&generation.ids);
        }
        ids
    }

    /// Takes in a row that the last read found in a gap. Says whether it is news of a shard that
    /// still wants it.
    pub(super) fn found(&mut self, id: i64, shard: Shard) -> bool {
        let mut wanted = false;
        for generation in &mut self.generations {
            if generation.ids.remove(id) {
                wanted |= generation.shards.contains(shard);
            }
        }
        self.drop_empty();
        wanted
    }

    /// Takes in ids that a read, which is over, stepped over on its way.
    pub(super) fn open(&mut self, ids: Ranges, shards: ShardSet) {
        if !ids.is_empty() {
            self.generations.push(Generation {
                ids,
                shards,
                remaining: None,
            });
        }
    }

    /// A read has covered all gaps up to `covered`, and it began after the last
    /// [`observe`](Self::observe): what nobody can fill any more is settled.
    pub(super) fn settle(&mut self, covered: i64) {
        self.generations.retain(|generation| {
            !(generation.is_dead() && generation.ids.last().is_none_or(|last| last <= covered))
        });
    }

    /// Takes in who is writing, asked after the last read was over.
    pub(super) fn observe(&mut self, writers: &Writers) {
        for generation in &mut self.generations {
            generation.observe(writers);
        }
        self.unite();
    }

    /// The highest id up to which `shard` misses nothing, if there is a gap for it.
    pub(super) fn settled(&self, shard: Shard) -> Option<i64> {
        self.generations
            .iter()
            .filter(|generation| generation.shards.contains(shard))
            .filter_map(|generation| generation.ids.first())
            .min()
            .map(|first| first - 1)
    }

    /// The lowest missing id.
    pub(super) fn first(&self) -> Option<i64> {
        let firsts = self
            .generations
            .iter()
            .filter_map(|generation| generation.ids.first());
        firsts.min()
    }

    /// Whether one more read settles a gap, without waiting for any writer.
    pub(super) fn can_settle(&self) -> bool {
        self.generations.iter().any(Generation::is_dead)
    }

    /// Takes over another cursor's gaps.
    pub(super) fn merge(&mut self, other: Self) {
        self.generations.extend(other.generations);
        self.unite();
    }

    /// Forgets what was missing for these shards.
    pub(super) fn drop_shards(&mut self, gone: ShardSet) {
        for generation in &mut self.generations {
            generation.shards = generation.shards.without(gone);
        }
        self.generations
            .retain(|generation| !generation.shards.is_empty());
    }

    fn drop_empty(&mut self) {
        self.generations
            .retain(|generation| !generation.ids.is_empty());
    }

    /// Makes one of generations that wait for the same writers, so that a transaction that stays
    /// open for hours leaves one generation behind and not one a read.
    fn unite(&mut self) {
        let mut united: Vec<Generation> = Vec::with_capacity(self.generations.len());
        for generation in self.generations.drain(..) {
            match united.iter_mut().find(|other| {
                other.shards == generation.shards && other.remaining == generation.remaining
            }) {
                Some(other) => other.ids.extend(&generation.ids),
                None => united.push(generation),
            }
        }
        self.generations = united;
    }
}

impl Generation {
    fn observe(&mut self, writers: &Writers) {
        let Some(remaining) = &mut self.remaining else {
            self.remaining = Some(writers.in_flight.clone());
            return;
        };
        let mut may_be_renamed = false;
        remaining.retain(|writer, xids| {
            if let Some(now) = writers.in_flight.get(writer) {
                xids.clone_from(now);
                return true;
            }
            may_be_renamed |= !Writers::is_prepared(writer);
            false
        });
        if may_be_renamed {
            let prepared = writers.prepared();
            remaining.extend(prepared.map(|(name, xids)| (name.clone(), xids.clone())));
        }
    }

    /// Whether nobody can fill the gap any more.
    fn is_dead(&self) -> bool {
        self.remaining.as_ref().is_some_and(BTreeMap::is_empty)
    }

    /// Who may fill the gaps, if they are many and all of those have numbers.
    fn resting_on(&self) -> Option<&BTreeMap<String, BTreeSet<Xid>>> {
        let remaining = self.remaining.as_ref()?;
        let known = !remaining.is_empty() && remaining.values().all(|xids| !xids.is_empty());
        (known && self.ids.len() > MANY).then_some(remaining)
    }
}

/// The writers of gaps that a read leaves out.
#[derive(Debug, Default)]
pub(super) struct Resting {
    /// The numbers of each.
    writers: BTreeSet<BTreeSet<Xid>>,
}

impl Resting {
    pub(super) fn is_empty(&self) -> bool {
        self.writers.is_empty()
    }

    /// Whether none of the gaps was filled as far as a read with this snapshot could see: each
    /// transaction that may fill one had not ended.
    pub(super) fn may_rest(&self, snapshot: &Snapshot) -> bool {
        let in_progress =
            |xids: &BTreeSet<Xid>| xids.iter().any(|&xid| snapshot.is_in_progress(xid));
        self.writers.iter().all(in_progress)
    }
}

#[cfg(test)]
mod tests;
