use std::time::Duration;

use tokio::time::Instant;

use super::engine::Engine;
use super::publishing::{Item, Key};
use super::scan::Question;
use crate::store::{Backend, Error, LogContent, LogRead, LogRequest, LogRow};

/// The longest pause while an id is missing: its transaction may end at any moment, and a foreign
/// writer's commit wakes nobody.
const GAP_PAUSE: Duration = Duration::from_millis(100);

/// How many rows a read asks for at least, however large messages are.
const FEWEST_ROWS: usize = 8;

impl<DB: Backend> Engine<DB> {
    /// Reads on with every cursor, and takes what is new into the lanes.
    pub(super) async fn read(&mut self) {
        // What is signalled from now on may be missing from what is read.
        self.commits.mark_unchanged();
        self.notices.mark_unchanged();
        self.no_room_for = 0;
        let first_gap = self.scans.first_gap();
        let mut news = false;
        let mut more = false;
        // From the highest cursor on, as reading can only unite those that were done already.
        for index in (0..self.scans.len()).rev() {
            match self.read_scan(index).await {
                Ok(read) => {
                    news |= read.news;
                    more |= read.more;
                }
                Err(error) => {
                    self.reading
                        .failed(&error, self.options.backoff, &self.health);
                    return;
                }
            }
        }
        if let Err(error) = self.ask_for_writers().await {
            self.reading
                .failed(&error, self.options.backoff, &self.health);
            return;
        }
        self.gap_closed |= first_gap.is_some() && self.scans.first_gap() != first_gap;
        let pause = self.pause(news, more);
        self.reading.succeeded(Instant::now() + pause, &self.health);
    }

    async fn read_scan(&mut self, index: usize) -> Result<Read, Error> {
        let limit = self.room().min(self.read_size()).min(self.read_rows);
        let (Some(mut question), 1..) = (self.scans.question(index), limit) else {
            return Ok(Read::default());
        };
        let mut read = self.ask(&question, limit).await?;
        let may_rest = |snapshot| question.resting.may_rest(snapshot);
        if !question.resting.is_empty()
            && !read.rows.is_empty()
            && !read.snapshot.as_ref().is_some_and(may_rest)
        {
            // A gap that was left out may have been filled, and what was read may come after that.
            self.scans.ask_for_all(index, &mut question);
            read = self.ask(&question, limit).await?;
        }
        let LogRead { rows, is_cut, .. } = read;
        let any = !rows.is_empty();
        self.learn_size(rows.len(), is_cut && rows.len() < limit);
        self.no_room_for = self.no_room_for.max(read.no_room_for.unwrap_or_default());
        if is_cut && !any {
            // Nothing was covered, so there is nothing to learn of gaps either.
            return Ok(Read {
                news: false,
                more: true,
            });
        }
        let in_order = DB::COMMITS_IN_ID_ORDER;
        let answer = self.scans.answer(index, &question, rows, is_cut, in_order);
        for row in answer.news {
            self.hold(row);
        }
        Ok(Read {
            news: any,
            more: answer.more,
        })
    }

    /// Where messages are large, reads ask for fewer rows, so that the database does not look at
    /// many for which there is no room.
    fn learn_size(&mut self, rows: usize, is_cut_by_bytes: bool) {
        let next = match is_cut_by_bytes {
            true => rows.max(FEWEST_ROWS / 2),
            false => self.read_rows,
        };
        self.read_rows = next.saturating_mul(2).min(self.read_size());
    }

    async fn ask(&self, question: &Question, limit: usize) -> Result<LogRead, Error> {
        let request = LogRequest {
            after: question.after,
            up_to: question.up_to,
            gaps: &question.gaps,
            limit,
            bytes: self.room_bytes(),
            first_is_free: self.lanes.held_bytes() == 0,
            shards: question.shards,
            with_snapshot: !question.resting.is_empty(),
        };
        let read = async {
            let mut connection = self.outbox.connection().await?;
            DB::read_log(&mut connection, &self.queries, &request)
                .await
                .map_err(Error::database("reading the outbox"))
        };
        self.in_time("reading the outbox", read).await
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

    fn hold(&mut self, row: LogRow) {
        let Some(epoch) = self.shards.epoch(row.shard) else {
            return;
        };
        if !self.shards.read(row.shard, row.id) {
            return;
        }
        let (key, content) = match row.content {
            LogContent::NotRead => return,
            LogContent::Message(message) => (Key::of(row.shard, &message.metadata), Ok(*message)),
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

/// What a read was like.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    news: bool,
    more: bool,
}
