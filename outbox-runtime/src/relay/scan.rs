use super::gaps::{Gaps, Resting};
use super::ranges::Ranges;
use crate::domain::Shard;
use crate::store::{LogRead, LogRow, ShardSet};

/// One cursor on the log, for the shards that have come as far as it.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) shards: ShardSet,
    /// Every id up to here was read or is in `gaps`.
    pub(super) cursor: i64,
    pub(super) gaps: Gaps,
}

/// The cursors on the log, the lowest first.
///
/// Shards that were claimed together begin where they were left and catch up; a cursor that has
/// come to the next one becomes part of it. So there is one in the long run.
#[derive(Debug, Default)]
pub(super) struct Scans {
    scans: Vec<Scan>,
    /// Counts the changes that make a question's answer useless.
    changes: u64,
}

/// What to ask for in a scan's next read.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) after: i64,
    pub(super) up_to: i64,
    pub(super) gaps: Vec<(i64, i64)>,
    /// Who may fill gaps that are not asked for.
    pub(super) resting: Resting,
    pub(super) shards: ShardSet,
}

/// What a read brought.
#[derive(Debug)]
pub(super) struct Answer {
    /// Rows of the scan's shards that were not seen before, in the order of ids.
    pub(super) news: Vec<LogRow>,
    /// Whether there may be more at once.
    pub(super) more: bool,
}

impl Scans {
    pub(super) fn len(&self) -> usize {
        self.scans.len()
    }

    /// Counts the changes of what is read for which shards: an answer to a question from before one
    /// is of no use.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Begins to read for these shards after an id.
    pub(super) fn add(&mut self, shards: ShardSet, cursor: i64) {
        if shards.is_empty() {
            return;
        }
        self.changes += 1;
        let place = self.scans.partition_point(|scan| scan.cursor < cursor);
        self.scans.insert(
            place,
            Scan {
                shards,
                cursor,
                gaps: Gaps::default(),
            },
        );
        self.merge();
    }

    /// Stops to read for these shards.
    pub(super) fn drop_shards(&mut self, gone: ShardSet) {
        self.changes += 1;
        for scan in &mut self.scans {
            scan.shards = scan.shards.without(gone);
            scan.gaps.drop_shards(gone);
        }
        self.scans.retain(|scan| !scan.shards.is_empty());
    }

    /// Up to which id all rows of the shard were read.
    pub(super) fn settled(&self, shard: Shard) -> Option<i64> {
        let scan = self.scans.iter().find(|scan| scan.shards.contains(shard))?;
        Some(scan.gaps.settled(shard).unwrap_or(scan.cursor))
    }

    /// Whether any id is missing.
    pub(super) fn has_gaps(&self) -> bool {
        self.scans.iter().any(|scan| !scan.gaps.is_empty())
    }

    /// The lowest id that is missing.
    pub(super) fn first_gap(&self) -> Option<i64> {
        let firsts = self.scans.iter().filter_map(|scan| scan.gaps.first());
        firsts.min()
    }

    /// Whether one more read settles a gap at once.
    pub(super) fn can_settle(&self) -> bool {
        self.scans.iter().any(|scan| scan.gaps.can_settle())
    }

    pub(super) fn gaps_mut(&mut self) -> impl Iterator<Item = &mut Gaps> {
        self.scans.iter_mut().map(|scan| &mut scan.gaps)
    }

    /// What the scan at `index` has to read next.
    pub(super) fn question(&self, index: usize) -> Option<Question> {
        let scan = self.scans.get(index)?;
        let next = self.scans.get(index + 1);
        let (gaps, resting) = scan.gaps.ids();
        Some(Question {
            after: scan.cursor,
            up_to: next.map_or(i64::MAX, |next| next.cursor),
            gaps: gaps.iter().collect(),
            resting,
            shards: scan.shards,
        })
    }

    /// Makes the question one that leaves nothing out.
    pub(super) fn ask_for_all(&self, index: usize, question: &mut Question) {
        if let Some(scan) = self.scans.get(index) {
            question.gaps = scan.gaps.all_ids().iter().collect();
            question.resting = Resting::default();
        }
    }

    /// Takes in what was read, in the order of ids and from one snapshot. If it is cut, there may be
    /// more behind what it looked at.
    ///
    /// With `in_id_order` what is missing is missing for good.
    pub(super) fn answer(
        &mut self,
        index: usize,
        question: &Question,
        read: LogRead,
        in_id_order: bool,
    ) -> Answer {
        let Some(scan) = self.scans.get_mut(index) else {
            return Answer {
                news: Vec::new(),
                more: false,
            };
        };
        let LogRead {
            rows,
            is_cut: more,
            passed,
            ..
        } = read;
        let last = passed.as_ref().map(|passed| passed.last);
        let last = last.or(rows.last().map(|row| row.id));
        let covered = last.filter(|_| more).unwrap_or(i64::MAX);
        let mut stepped_over = Ranges::default();
        let mut news = Vec::with_capacity(rows.len());
        for row in rows {
            let is_news = if row.id <= question.after {
                scan.gaps.found(row.id, row.shard)
            } else {
                if passed.is_none() {
                    stepped_over.insert(scan.cursor + 1, row.id - 1);
                    scan.cursor = row.id;
                }
                scan.shards.contains(row.shard)
            };
            if is_news {
                news.push(row);
            }
        }
        if let Some(passed) = passed {
            for (first, last) in passed.missing {
                stepped_over.insert(first, last);
            }
            scan.cursor = scan.cursor.max(passed.last);
        }
        scan.gaps.settle(covered);
        if !more && question.up_to < i64::MAX {
            stepped_over.insert(scan.cursor + 1, question.up_to);
            scan.cursor = question.up_to;
        }
        if !in_id_order {
            scan.gaps.open(stepped_over, scan.shards);
        }
        self.merge();
        Answer { news, more }
    }

    /// Makes one of cursors that have met.
    fn merge(&mut self) {
        self.scans.dedup_by(|higher, lower| {
            let met = higher.cursor <= lower.cursor;
            if met {
                lower.shards = lower.shards.with(higher.shards);
                lower.gaps.merge(std::mem::take(&mut higher.gaps));
            }
            met
        });
    }
}

#[cfg(test)]
mod tests;
