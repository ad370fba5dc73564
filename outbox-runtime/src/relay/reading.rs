use std::time::Duration;

use tokio::time::Instant;

use super::engine::{Engine, in_time, of_task};
use super::publishing::{Item, Key};
use super::reader::READING;
use super::scan::Question;
use crate::domain::SHARDS;
use crate::store::{Backend, Error, LogContent, LogRead, LogRequest, LogRow};

/// The longest pause while an id is missing: its transaction may end at any moment, and a foreign
/// writer's commit wakes nobody.
const GAP_PAUSE: Duration = Duration::from_millis(100);

/// How many rows a read asks for at least, however large messages are.
const FEWEST_ROWS: usize = 8;

/// By how much a look at rows of few shards is widened at most.
const MOST_WIDENED: usize = 8;

/// Reads with every cursor, one after the other, of which one is under way.
///
/// Only its statement runs beside the engine's other work, so that the database looks for the next
/// rows while the last ones are on their way. What it brought is taken in by the engine itself.
#[derive(Debug)]
pub(super) struct Round {
    /// What was asked last, and for which cursor.
    asked: Option<(Question, usize)>,
    /// How many cursors are still to be asked for: from the highest on, as reading can only unite
    /// those that were done already.
    left: usize,
    /// How many changes of the cursors there were when it began.
    changes: u64,
    limit: usize,
    news: bool,
    more: bool,
}

impl<DB: Backend> Engine<DB> {
    /// Begins to read on with every cursor, and takes what is new into the lanes as it comes.
    pub(super) async fn begin_reading(&mut self) {
        // What is signalled from now on may be missing from what is read.
        self.commits.mark_unchanged();
        self.notices.mark_unchanged();
        self.no_room_for = 0;
        self.round = Some(Round {
            asked: None,
            left: self.scans.len(),
            changes: self.scans.changes(),
            limit: 0,
            news: false,
            more: false,
        });
        self.go_on_reading().await;
    }

    /// Reads on with every cursor to the end.
    pub(super) async fn read(&mut self) {
        self.forget_reading();
        self.begin_reading().await;
        while self.round.is_some() {
            let arrived = self.asking.join_next().await;
            self.arrived = arrived.or(self.arrived.take());
            self.go_on_reading().await;
            self.hold_fresh();
        }
    }

    /// Ends the statement that is under way, if there is one: nothing of it was taken in.
    pub(super) fn forget_reading(&mut self) {
        self.asking.abort_all();
        self.asking.detach_all();
        self.arrived = None;
        self.round = None;
    }

    /// Takes in what was read and asks for what is next. It may be dropped anywhere.
    pub(super) async fn go_on_reading(&mut self) {
        while let Some(mut round) = self.round.take() {
            if let Some(arrived) = self.arrived.take() {
                if round.changes != self.scans.changes() {
                    // The cursors are not those that were asked for.
                    self.reading.hasten();
                    return;
                }
                match of_task(READING, arrived) {
                    Ok(read) => self.take_in_read(&mut round, read),
                    Err(error) => {
                        // It may have been more than can be sent in time.
                        self.are_large = true;
                        self.read_rows = (round.limit / 8).max(FEWEST_ROWS);
                        return self.reading_failed(&error);
                    }
                }
                self.round = Some(round);
            } else if !self.asking.is_empty() {
                self.round = Some(round);
                return;
            } else if let Some(index) = round.left.checked_sub(1) {
                round.left = index;
                round.limit = self.room().min(self.read_size()).min(self.read_rows);
                if let (Some(question), 1..) = (self.scans.question(index), round.limit) {
                    self.ask(&question, round.limit);
                    round.asked = Some((question, index));
                }
                self.round = Some(round);
            } else {
                self.round = Some(round);
                let asked = self.ask_for_writers().await;
                if let Some(round) = self.round.take() {
                    self.end_round(&round, asked);
                }
            }
        }
    }

    fn end_round(&mut self, round: &Round, asked: Result<(), Error>) {
        if let Err(error) = asked {
            return self.reading_failed(&error);
        }
        let pause = self.pause(round.news, round.more);
        self.reading.succeeded(Instant::now() + pause, &self.health);
    }

    fn reading_failed(&mut self, error: &Error) {
        self.reading
            .failed(error, self.options.backoff, &self.health);
    }

    fn take_in_read(&mut self, round: &mut Round, read: LogRead) {
        let Some((mut question, index)) = round.asked.take() else {
            return;
        };
        let may_rest = |snapshot| question.resting.may_rest(snapshot);
        if !question.resting.is_empty()
            && !read.rows.is_empty()
            && !read.snapshot.as_ref().is_some_and(may_rest)
        {
            // A gap that was left out may have been filled, and what was read may come after that.
            self.scans.ask_for_all(index, &mut question);
            self.ask(&question, round.limit);
            round.asked = Some((question, index));
            return;
        }
        let any = !read.rows.is_empty();
        self.learn_size(&read, round.limit);
        if read.is_cut && !any && read.passed.is_none() {
            // Nothing was covered, so there is nothing to learn of gaps either.
            round.more = true;
            return;
        }
        let in_order = DB::COMMITS_IN_ID_ORDER;
        let first_gap = self.scans.first_gap();
        let answer = self.scans.answer(index, &question, read, in_order);
        self.gap_closed |= first_gap.is_some() && self.scans.first_gap() != first_gap;
        for row in answer.news {
            self.receive(row);
        }
        round.news |= any;
        round.more |= answer.more;
    }

    /// Where messages are large, reads ask for fewer rows, and the database looks at sizes first, so
    /// that it does not send many for which there is no room.
    fn learn_size(&mut self, read: &LogRead, limit: usize) {
        let rows = read.rows.len();
        self.no_room_for = self.no_room_for.max(read.no_room_for.unwrap_or_default());
        if rows > 0 || read.no_room_for.is_some() {
            let bytes: usize = read.rows.iter().map(|row| row.content.bytes()).sum();
            let mean = bytes.checked_div(rows).unwrap_or_default();
            let most = self.options.max_held_bytes / 4;
            let may_come = widened(self.read_size(), self.shards.len());
            self.are_large = read.no_room_for.is_some() || mean.saturating_mul(may_come) > most;
        }
        let is_cut_by_bytes = read.is_cut && read.passed.is_none() && rows < limit;
        let next = match read.no_room_for.is_some() || is_cut_by_bytes {
            true => rows.max(FEWEST_ROWS / 2),
            false => self.read_rows,
        };
        self.read_rows = next.saturating_mul(2).min(self.read_size());
    }

    /// Sends a question to the database.
    fn ask(&mut self, question: &Question, limit: usize) {
        let reader = self.reader.clone();
        let bytes = self.room_bytes();
        let first_is_free = self.lanes.held_bytes() == 0 && self.fresh.is_empty();
        let (after, up_to, shards) = (question.after, question.up_to, question.shards);
        let (gaps, with_snapshot) = (question.gaps.clone(), !question.resting.is_empty());
        let measured = self.are_large;
        let plain = !measured && question.gaps.is_empty() && question.resting.is_empty();
        let limit = match plain {
            true => self.room().min(widened(limit, question.shards.len())),
            false => limit,
        };
        let read = async move {
            let request = LogRequest {
                after,
                up_to,
                gaps: &gaps,
                limit,
                bytes,
                first_is_free,
                shards,
                with_snapshot,
                measured,
            };
            reader.read(&request).await
        };
        self.asking
            .spawn(in_time(self.options.lease / 3, READING, read));
    }

    /// Learns which transactions may still fill the gaps: after the reads that found them.
    async fn ask_for_writers(&mut self) -> Result<(), Error> {
        if !self.scans.has_gaps() {
            return Ok(());
        }
        let ask = async {
            let mut connection = self.outbox.connection().await?;
            DB::writers_in_flight(&mut connection, &self.queries)
                .await
                .map_err(Error::database("asking for transactions in flight"))
        };
        let writers = self
            .in_time("asking for transactions in flight", ask)
            .await?;
        for gaps in self.scans.gaps_mut() {
            gaps.observe(&writers);
        }
        Ok(())
    }

    /// No position passes the row from now on. Where it waits is looked for later.
    fn receive(&mut self, row: LogRow) {
        let Some(epoch) = self.shards.epoch(row.shard) else {
            return;
        };
        if self.shards.read(row.shard, row.id) {
            self.fresh_bytes += row.content.bytes();
            self.fresh.push((epoch, row));
        }
    }

    /// Takes the rows that were read last into the lanes. The statement for the next ones may be
    /// under way meanwhile.
    pub(super) fn hold_fresh(&mut self) {
        for (epoch, row) in std::mem::take(&mut self.fresh) {
            // One that was lost and claimed again is read anew.
            if self.shards.epoch(row.shard) == Some(epoch) {
                self.hold(epoch, row);
            }
        }
        self.fresh_bytes = 0;
    }

    fn hold(&mut self, epoch: i64, row: LogRow) {
        let (key, content) = match row.content {
            LogContent::NotRead => return,
            LogContent::Message(message) => (Key::of(row.shard, &message.metadata), Ok(message)),
            // It takes its place in the order, and fails when its turn comes.
            LogContent::Unreadable(unreadable) => (
                Key::of_unreadable(row.shard, row.id, &unreadable),
                Err(unreadable),
            ),
        };
        if self.parked.holds(&key) {
            self.parked.wait_behind(key, epoch, row.id);
            self.counters.parked(1);
            self.parking.hasten();
            return;
        }
        self.lanes.push(
            key,
            Item {
                id: row.id,
                epoch,
                content,
                failed: (0, Duration::ZERO),
            },
        );
    }

    fn pause(&mut self, news: bool, more: bool) -> Duration {
        if more || self.scans.can_settle() || self.scans.len() > 1 {
            self.poll_pause = self.options.poll_min;
            return Duration::ZERO;
        }
        let pause = if news {
            self.options.poll_min
        } else {
            self.poll_pause
        };
        self.poll_pause = pause.saturating_mul(2).min(self.options.poll_max);
        if self.scans.has_gaps() {
            return pause.min(GAP_PAUSE);
        }
        pause
    }
}

/// How many rows to look at, so that about as many are of these shards as otherwise: rows of others are
/// looked at and not sent. Where all are of these shards after all, they are not too many.
fn widened(limit: usize, shards: usize) -> usize {
    let share = usize::from(SHARDS).checked_div(shards).unwrap_or(1);
    limit.saturating_mul(share.min(MOST_WIDENED))
}
