use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, debug, warn};

use super::conflicts::Conflicts;
use super::counters::Counters;
use super::failure::{Failure, unreadable};
use super::handlers::{Handler, Handlers};
use super::options::{ConsumerOptions, OnUnhandled, OnUnreadable};
use super::parking::Parking;
use super::transact::{Effect, Transactor};
use super::turns::{Turn, Turns};
use crate::domain::{Message, Metadata};
use crate::error_text;
use crate::health::HealthHandle;
use crate::store::{Backend, Parked};
use crate::telemetry::metrics::Timer;
use crate::telemetry::spans;
use crate::unit_of_work::WriteTransaction;

/// Takes a message through all consumers that want it, until each has had its effect or has parked
/// it.
pub(super) struct Dispatcher<DB: Backend> {
    pub(super) handlers: Handlers<DB>,
    pub(super) transactor: Transactor<DB>,
    pub(super) parking: Parking<DB>,
    pub(super) options: ConsumerOptions,
    pub(super) counters: Counters,
    pub(super) health: HealthHandle,
    pub(super) turns: Arc<Turns>,
    pub(super) stop: CancellationToken,
    pub(super) unhandled_seen: Mutex<HashSet<String>>,
}

/// What is to be said to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All is committed or parked, or by configuration nothing is to be done.
    Done,
    /// The consumer stops before that.
    Stopped,
}

/// What an attempt before has left to the first round.
#[derive(Default)]
pub(super) struct Start {
    /// A turn that is not used up.
    pub(super) turn: Option<Turn>,
    /// That attempt may have been committed.
    pub(super) is_in_doubt: bool,
}

/// What is left to do for a message.
struct Todo<DB: Backend> {
    pending: Vec<Pending<DB>>,
    /// Whom nobody can help here: the consumer, empty for an event that nobody takes, and why.
    unable: Vec<(&'static str, String)>,
}

/// A consumer that has neither had its effect yet nor parked the message.
struct Pending<DB: Backend> {
    handler: Handler<DB>,
    /// When it was published, if the broker knows.
    published_at: Option<OffsetDateTime>,
    /// An earlier attempt may have been committed.
    is_in_doubt: bool,
    conflicts: Conflicts,
}

/// How a round over all that is left ended.
#[derive(Default)]
struct Round {
    /// How long to wait before the next one.
    wait: Duration,
    /// Why messages could not be parked.
    unparked: Option<String>,
}

impl<DB: Backend> Dispatcher<DB> {
    /// Has each consumer that wants the message either handle or park it.
    pub(super) async fn handle(
        &self,
        message: &Message,
        published_at: Option<OffsetDateTime>,
        malformed: Option<String>,
        start: Start,
    ) -> Outcome {
        let metadata = &message.metadata;
        let Start {
            mut turn,
            is_in_doubt,
        } = start;
        let pending = |handler| Pending::new(handler, published_at, is_in_doubt);
        let mut todo = match self.handlers.takers(metadata) {
            _ if malformed.is_some() => Todo {
                pending: Vec::new(),
                unable: self.malformed(message, malformed),
            },
            Some(takers) => Todo {
                pending: takers.handlers.into_iter().map(pending).collect(),
                unable: self.unreadable(metadata, &takers.unable),
            },
            None => Todo {
                pending: Vec::new(),
                unable: self.unhandled(metadata),
            },
        };
        let mut complaint = Complaint::of(&self.health, metadata);
        let mut failures = 0;
        while !todo.is_done() {
            let Some(round) = self.round(message, &mut todo, turn.take()).await else {
                return Outcome::Stopped;
            };
            if todo.is_done() {
                break;
            }
            let mut wait = round.wait;
            if let Some(reason) = round.unparked {
                failures += 1;
                warn!(
                    message_id = %metadata.message_id,
                    reason,
                    failures,
                    "a message can neither be handled nor parked; trying again"
                );
                complaint.say(&format!(
                    "can neither be handled nor parked and is tried again: {reason}"
                ));
                wait = wait.max(self.options.backoff.delay(failures));
            }
            tokio::select! {
                () = self.stop.cancelled() => return Outcome::Stopped,
                () = tokio::time::sleep(wait) => {}
            }
        }
        Outcome::Done
    }

    /// Counts a delivery of a message that is here already, for each handler that wants it.
    pub(super) fn count_joined(&self, metadata: &Metadata) {
        let takers = self.handlers.takers(metadata);
        for handler in takers.map(|takers| takers.handlers).unwrap_or_default() {
            self.counters.duplicate(handler.registration.consumer);
        }
    }

    /// Makes an attempt with a message that the transaction has taken out of the parked ones.
    pub(super) async fn attempt_parked(
        &self,
        transaction: WriteTransaction<DB>,
        handler: Handler<DB>,
        message: &Message,
        number: u32,
    ) -> Result<Effect, Failure> {
        let attempt = self
            .transactor
            .attempt_parked(transaction, handler, message);
        self.tell(attempt, number, handler, message).await
    }

    /// Lets each pending consumer try once, and keeps what is not settled. `None` when the consumer
    /// stops.
    async fn round(
        &self,
        message: &Message,
        todo: &mut Todo<DB>,
        turn: Option<Turn>,
    ) -> Option<Round> {
        let _turn = match turn {
            Some(turn) => turn,
            None => self.stop.run_until_cancelled(self.turns.next()).await??,
        };
        let mut round = Round::default();
        for mut one in std::mem::take(&mut todo.pending) {
            if self.stop.is_cancelled() {
                self.transactor.spare.rest().await;
                return None;
            }
            if !self.is_settled(&mut one, message, &mut round).await {
                todo.pending.push(one);
            }
        }
        for (consumer, cause) in std::mem::take(&mut todo.unable) {
            if let Err(error) = self.parking.dead(consumer, message, &cause).await {
                round.unparked = Some(error_text::of_error(&error));
                todo.unable.push((consumer, cause));
            }
        }
        self.transactor.spare.rest().await;
        Some(round)
    }

    /// Lets the consumer try once; `false` if it has to do so again in place.
    async fn is_settled(
        &self,
        pending: &mut Pending<DB>,
        message: &Message,
        round: &mut Round,
    ) -> bool {
        let attempt = self.transactor.attempt(pending.handler, message);
        let consumer = pending.handler.registration.consumer;
        let failure = match self.tell(attempt, 1, pending.handler, message).await {
            // A lost answer was a commit after all.
            Ok(Effect::Duplicate) if pending.is_in_doubt => {
                self.count(Effect::Committed, pending.handler, pending.published_at);
                return true;
            }
            Ok(effect) => {
                self.count(effect, pending.handler, pending.published_at);
                return true;
            }
            Err(failure) => failure,
        };
        self.counters.failed_attempt();
        if failure.is_in_doubt && !pending.is_in_doubt {
            // A second attempt waits for the end of the first, and so finds out how that was.
            pending.is_in_doubt = true;
            self.counters.metrics.retried(consumer);
            return false;
        }
        if let Some(wait) = pending.conflicts.after(&failure) {
            round.wait = round.wait.max(wait);
            self.counters.metrics.retried(consumer);
            return false;
        }
        let parked = self.parking.failed(pending.handler, message, &failure);
        match parked.await {
            Ok(Parked::Handled) if pending.is_in_doubt => self.counters.handled(),
            Ok(Parked::Handled) => self.counters.duplicate(consumer),
            Ok(Parked::Now | Parked::Before) => {}
            Err(error) => {
                round.unparked = Some(format!(
                    "{}; parking it: {}",
                    failure.reason,
                    error_text::of_error(&error)
                ));
                return false;
            }
        }
        true
    }

    /// Counts how a message ended well for a consumer.
    pub(super) fn count(
        &self,
        effect: Effect,
        handler: Handler<DB>,
        published_at: Option<OffsetDateTime>,
    ) {
        let (consumer, event_type) = (
            handler.registration.consumer,
            handler.registration.event_type,
        );
        match effect {
            Effect::Duplicate => self.counters.duplicate(consumer),
            Effect::Committed => {
                self.counters.handled();
                let metrics = &self.counters.metrics;
                metrics.handled(consumer, event_type, published_at);
            }
            Effect::Parked => {
                self.counters.parked(consumer);
                self.parking.changed.notify_one();
            }
        }
    }

    /// Follows an attempt in a span, and tells how it ended.
    ///
    /// The number is that by which the retry policy counts: what is repeated in place, after a
    /// version conflict or while the database is down, has the same one.
    async fn tell(
        &self,
        attempt: impl Future<Output = Result<Effect, Failure>>,
        number: u32,
        handler: Handler<DB>,
        message: &Message,
    ) -> Result<Effect, Failure> {
        let (consumer, timer) = (handler.registration.consumer, Timer::start());
        let span = spans::handle(&message.metadata, consumer, number);
        let mut result = attempt.instrument(span.clone()).await;
        let outcome = match &mut result {
            Ok(effect) => tell_settled(&span, *effect),
            Err(failure) => {
                failure.reason = error_text::cause(&failure.reason, Some(&message.payload));
                tell_failed(&span, failure)
            }
        };
        let (metrics, event_type) = (&self.counters.metrics, handler.registration.event_type);
        metrics.attempted(consumer, event_type, outcome, &timer);
        result
    }

    /// Who is to park what is no message.
    fn malformed(&self, message: &Message, reason: Option<String>) -> Vec<(&'static str, String)> {
        self.counters.unreadable("");
        // It comes from outside: what no database takes must not keep it from being parked.
        let cause = |reason| {
            let cause = format!("it is no message that can be read: {reason}");
            error_text::cause(&cause, Some(&message.payload))
        };
        reason
            .into_iter()
            .map(|reason| ("", cause(reason)))
            .collect()
    }

    /// Who is to park an event that no handler takes.
    fn unhandled(&self, metadata: &Metadata) -> Vec<(&'static str, String)> {
        self.counters.unhandled();
        match self.options.on_unhandled {
            OnUnhandled::Ignore => {
                let is_new = self
                    .unhandled_seen
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(metadata.event_type.clone());
                if is_new {
                    warn!(
                        event_type = metadata.event_type,
                        "no handler takes this event; it is acknowledged and counted"
                    );
                }
                Vec::new()
            }
            OnUnhandled::Park => vec![(
                "",
                "no handler takes the event; deploy a program with one and requeue the message"
                    .to_owned(),
            )],
        }
    }

    /// Who is to park a message in a version that they do not read.
    fn unreadable(
        &self,
        metadata: &Metadata,
        consumers: &[&'static str],
    ) -> Vec<(&'static str, String)> {
        for consumer in consumers {
            self.counters.unreadable(consumer);
        }
        if consumers.is_empty() {
            return Vec::new();
        }
        let is_parked = self.options.on_unreadable == OnUnreadable::Park;
        warn!(
            event_type = metadata.event_type,
            schema_version = metadata.schema_version,
            message_id = %metadata.message_id,
            consumers = consumers.join(", "),
            is_parked,
            "the version can't be read"
        );
        if !is_parked {
            return Vec::new();
        }
        consumers
            .iter()
            .map(|&consumer| (consumer, unreadable(metadata)))
            .collect()
    }
}

impl<DB: Backend> Todo<DB> {
    const fn is_done(&self) -> bool {
        self.pending.is_empty() && self.unable.is_empty()
    }
}

impl<DB: Backend> Pending<DB> {
    fn new(handler: Handler<DB>, published_at: Option<OffsetDateTime>, is_in_doubt: bool) -> Self {
        Self {
            handler,
            published_at,
            is_in_doubt,
            conflicts: Conflicts::default(),
        }
    }
}

/// Says how an attempt ended well.
pub(super) fn tell_settled(span: &Span, effect: Effect) -> &'static str {
    let _entered = span.enter();
    spans::outcome(span, effect.name());
    debug!(?effect, "message settled");
    effect.name()
}

/// Says how an attempt failed.
pub(super) fn tell_failed(span: &Span, failure: &Failure) -> &'static str {
    let _entered = span.enter();
    spans::outcome(span, "failed");
    spans::failed(span, failure.name());
    if failure.is_version_conflict {
        debug!(reason = failure.reason, "version conflict");
    } else {
        warn!(reason = failure.reason, "attempt failed");
    }
    failure.name()
}

/// A message's reason for degraded health, withdrawn when the message is done or given back.
struct Complaint<'a> {
    health: &'a HealthHandle,
    metadata: &'a Metadata,
    is_said: bool,
}

impl<'a> Complaint<'a> {
    const fn of(health: &'a HealthHandle, metadata: &'a Metadata) -> Self {
        Self {
            health,
            metadata,
            is_said: false,
        }
    }

    fn say(&mut self, reason: &str) {
        self.is_said = true;
        let Metadata {
            message_id,
            event_type,
            schema_version,
            ..
        } = self.metadata;
        self.health.degrade(
            &self.part(),
            format!("message {message_id} ({event_type} v{schema_version}) {reason}"),
        );
    }

    fn part(&self) -> String {
        format!("message {}", self.metadata.message_id)
    }
}

impl Drop for Complaint<'_> {
    fn drop(&mut self) {
        if self.is_said {
            self.health.recover(&self.part());
        }
    }
}
