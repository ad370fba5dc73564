use std::collections::BTreeSet;

use super::ranges::Ranges;
use crate::domain::Shard;
use crate::store::{ShardSet, Writers};

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
    remaining: Option<BTreeSet<String>>,
}

impl Gaps {
    pub(super) fn is_empty(&self) -> bool {
        self.generations.is_empty()
    }

    /// All missing ids, for the next read.
    pub(super) fn ids(&self) -> Ranges {
        let mut all = Ranges::default();
        for generation in &self.generations {
            all.extend(&generation.ids);
        }
        all
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
        remaining.retain(|writer| {
            let stays = writers.in_flight.contains(writer);
            may_be_renamed |= !stays && !Writers::is_prepared(writer);
            stays
        });
        if may_be_renamed {
            remaining.extend(writers.prepared().cloned());
        }
    }

    /// Whether nobody can fill the gap any more.
    fn is_dead(&self) -> bool {
        self.remaining.as_ref().is_some_and(BTreeSet::is_empty)
    }
}

#[cfg(test)]
mod tests;
