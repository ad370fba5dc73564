//! The member of a group: all that is asked of librdkafka's consumer is asked in one thread.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::Offset;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message as _};
use rdkafka::topic_partition_list::TopicPartitionList;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, info, warn};

use super::assignment::{Assignment, Place};
use super::group::GroupEvents;
use super::{record, topology};
use crate::broker::BrokerError;
use crate::broker::cloud_events::Decoder;

/// How often the broker is told what is finished, at most.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// How long to wait for room before fetching is paused, which throws away what was fetched.
const ROOM_WITHIN: Duration = Duration::from_millis(200);
/// How long to wait for the group before it is left, and how often to look.
const SETTLE_WITHIN: Duration = Duration::from_secs(2);
const SETTLE_LOOK: Duration = Duration::from_millis(10);
/// How often a broker is asked whether it is there again, and how long its answer may take, for which
/// the member's thread waits.
const ASK_EVERY: Duration = Duration::from_secs(1);
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// A seek is done by librdkafka itself, without the broker.
const SEEK_WITHIN: Duration = Duration::from_secs(5);

/// One member of a group.
pub(super) struct Member {
    pub(super) consumer: StreamConsumer<GroupEvents>,
    pub(super) assignment: Arc<Assignment>,
    pub(super) decoder: Decoder,
    /// Our topics, and those of others.
    pub(super) own: Vec<String>,
    pub(super) foreign: Vec<String>,
    /// How many messages may wait or be in work.
    pub(super) prefetch: usize,
}

impl Member {
    /// Receives until the subscription has ended, and then leaves the group.
    ///
    /// It polls also when there is no room, or the group would think that it died. Calls to
    /// librdkafka may block, so that the thread has to be its own.
    pub(super) async fn run(self) {
        let _ending = Ending(&self.assignment);
        let mut is_paused = false;
        let mut told_at = Instant::now();
        let mut asked_at = told_at;
        while !self.assignment.has_ended() {
            self.go_back();
            let is_in_trouble = self.assignment.trouble().is_some();
            if is_in_trouble && asked_at.elapsed() >= ASK_EVERY {
                self.ask_whether_it_is_over();
                asked_at = Instant::now();
            }
            if told_at.elapsed() >= TELL_EVERY {
                self.tell();
                told_at = Instant::now();
            }
            if is_paused {
                is_paused = !self.has_room(self.prefetch / 4) || !self.pause(false);
            } else if !self.wait_for_room().await {
                is_paused = self.pause(true);
            }
            tokio::select! {
                biased;
                received = self.consumer.recv() => match received {
                    Ok(message) => {
                        // While it is paused: of a partition that came after that.
                        is_paused = false;
                        self.take(&message);
                    }
                    Err(error) => self.judge(&error),
                },
                () = self.assignment.answered() => {}
                () = sleep_until(told_at + TELL_EVERY), if self.assignment.has_news() => {}
                () = sleep_until(asked_at + ASK_EVERY), if is_in_trouble => {}
            }
        }
        self.tell_for_good();
        self.settle().await;
    }

    /// Waits until the member has joined: librdkafka leaves a group that it is about to join without
    /// a word, and the others would wait for the session's timeout.
    async fn settle(&self) {
        let limit = Instant::now() + SETTLE_WITHIN;
        while !self.assignment.is_settled() {
            // What comes is for those that stay.
            let moment = limit.min(Instant::now() + SETTLE_LOOK);
            let _ = timeout_at(moment, self.consumer.recv()).await;
            if Instant::now() >= limit {
                return;
            }
        }
    }

    /// librdkafka tells when it lost all brokers, and not when it has one again.
    fn ask_whether_it_is_over(&self) {
        let topic = self.own.first().or(self.foreign.first());
        let answer = self
            .consumer
            .fetch_metadata(topic.map(String::as_str), ANSWER_WITHIN);
        if answer.is_ok() {
            info!("a Kafka broker answers again");
            self.assignment.set_trouble(None);
        }
    }

    /// Whether there is room for one message and so many more.
    fn has_room(&self, more: usize) -> bool {
        self.assignment.unfinished() + more < self.prefetch
    }

    /// Waits a moment for room. Whether there is some.
    async fn wait_for_room(&self) -> bool {
        let limit = Instant::now() + ROOM_WITHIN;
        while !self.has_room(0) && !self.assignment.has_ended() {
            if timeout_at(limit, self.assignment.answered()).await.is_err() {
                return false;
            }
        }
        true
    }

    fn take(&self, message: &BorrowedMessage<'_>) {
        let topic = message.topic();
        let place = Place {
            topic: topic.into(),
            partition: message.partition(),
        };
        let Some(ticket) = self.assignment.admit(&place, message.offset()) else {
            return;
        };
        let foreign = self.foreign.iter().find(|name| *name == topic);
        let raw = record::read(message);
        // A mapping is the user's code, so no lock is held.
        let decoded = self.decoder.decode(&raw, foreign.map(String::as_str));
        self.assignment.hand_over(ticket, decoded);
    }

    /// Reads again from what was given back.
    fn go_back(&self) {
        for (place, offset) in self.assignment.given_back() {
            let Place { topic, partition } = &place;
            let offset = Offset::Offset(offset);
            match self.consumer.seek(topic, *partition, offset, SEEK_WITHIN) {
                Ok(()) => self.assignment.went_back(&place),
                // Another subscription begins there by itself.
                Err(error) => {
                    let error = BrokerError::new("going back to a message", error);
                    self.assignment.fail(error);
                }
            }
        }
    }

    fn tell(&self) {
        let positions = self.assignment.to_tell();
        if positions.is_empty() {
            return;
        }
        let told =
            list_of(&positions).and_then(|list| self.consumer.commit(&list, CommitMode::Async));
        if let Err(error) = told {
            debug!(%error, "can't commit offsets now");
            let places = positions.into_iter().map(|(place, _)| place);
            self.assignment.not_told(places);
        }
    }

    /// Says all that is finished before others begin where the broker was told last.
    fn tell_for_good(&self) {
        let positions = self.assignment.to_tell();
        if positions.is_empty() || self.consumer.assignment_lost() {
            return;
        }
        let told =
            list_of(&positions).and_then(|list| self.consumer.commit(&list, CommitMode::Sync));
        if let Err(error) = told {
            debug!(%error, "can't commit offsets at the end");
        }
    }

    /// Stops or begins to fetch from all partitions. Whether that worked.
    fn pause(&self, is_to_pause: bool) -> bool {
        let done = self
            .consumer
            .assignment()
            .and_then(|all| match is_to_pause {
                true => self.consumer.pause(&all),
                false => self.consumer.resume(&all),
            });
        if let Err(error) = &done {
            debug!(%error, is_to_pause, "can't pause or resume now");
        }
        done.is_ok()
    }

    /// A connection that broke is made again by librdkafka; other things somebody has to know of.
    fn judge(&self, error: &KafkaError) {
        let context = &self.consumer.context().context;
        let fail = |text: String| {
            let error = BrokerError::new("receiving", text);
            self.assignment.fail(error);
        };
        let code = match error {
            KafkaError::MessageConsumptionFatal(_) => return fail(context.explain(error)),
            other => other.rdkafka_error_code(),
        };
        match code {
            Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition) => {
                // The topic stands in the text alone.
                let trouble = context.trouble().unwrap_or_default();
                let is_named = |topic: &&String| trouble.split(": ").any(|part| part == **topic);
                if let Some(topic) = self.foreign.iter().find(is_named) {
                    warn!(
                        topic,
                        "the foreign topic is missing; it is read once it is there"
                    );
                } else if let Some(topic) = self.own.iter().find(is_named) {
                    fail(topology::is_missing(topic));
                } else {
                    fail(context.explain(error));
                }
            }
            Some(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed
                | RDKafkaErrorCode::InconsistentGroupProtocol
                | RDKafkaErrorCode::InvalidGroupId
                | RDKafkaErrorCode::InvalidSessionTimeout,
            ) => fail(context.explain(error)),
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                let trouble = context.trouble();
                warn!(trouble, "no Kafka broker answers; connecting again");
                let trouble = trouble.unwrap_or_else(|| error.to_string());
                let text = format!("no Kafka broker answers: {trouble}");
                self.assignment.set_trouble(Some(text));
            }
            _ => debug!(%error, "librdkafka goes on by itself"),
        }
    }
}

/// Says that the thread ended, also when it panicked.
struct Ending<'a>(&'a Assignment);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.0.has_ended() {
            let error = BrokerError::new("receiving", "the member's thread ended");
            self.0.fail(error);
        }
    }
}

/// Positions as librdkafka takes them.
pub(super) fn list_of(positions: &[(Place, i64)]) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::with_capacity(positions.len());
    for (Place { topic, partition }, position) in positions {
        list.add_partition_offset(topic, *partition, Offset::Offset(*position))?;
    }
    Ok(list)
}
