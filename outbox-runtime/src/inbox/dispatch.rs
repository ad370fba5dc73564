use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, error, info_span, warn};

use super::counters::Counters;
use super::failure::Failure;
use super::handlers::{Handler, Handlers, Takers};
use super::options::{ConsumerOptions, OnUnhandled, OnUnreadable};
use super::retries::{Retries, Retry};
use super::transact::{Effect, Transactor};
use crate::domain::{Message, Metadata};
use crate::health::HealthHandle;
use crate::store::Backend;

/// Takes a message through all consumers that want it, until each has had its effect.
pub(super) struct Dispatcher<DB: Backend> {
    pub(super) handlers: Handlers<DB>,
    pub(super) transactor: Transactor<DB>,
    pub(super) options: ConsumerOptions,
    pub(super) counters: Counters,
    pub(super) health: HealthHandle,
    /// One permit for each message that may be handled at a time.
    pub(super) running: Semaphore,
    pub(super) stop: CancellationToken,
    pub(super) unhandled_seen: Mutex<HashSet<String>>,
}

/// What is to be said to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All is committed, or by configuration nothing is to be done.
    Done,
    /// The consumer stops before that.
    Stopped,
}

/// A consumer that has not had its effect yet.
struct Pending<DB: Backend> {
    handler: Handler<DB>,
    /// An earlier attempt may have been committed.
    is_in_doubt: bool,
}

impl<DB: Backend> Dispatcher<DB> {
    pub(super) async fn handle(&self, message: &Message) -> Outcome {
        let Some(takers) = self.handlers.takers(&message.metadata) else {
            return self.unhandled(&message.metadata).await;
        };
        let Takers { handlers, unable } = takers;
        let pending = handlers
            .into_iter()
            .map(|handler| Pending {
                handler,
                is_in_doubt: false,
            })
            .collect();
        match self.handle_all(message, pending).await {
            Outcome::Done if !unable.is_empty() => {
                self.unreadable(&message.metadata, &unable).await
            }
            outcome => outcome,
        }
    }

    /// How many handlers want the message.
    pub(super) fn takers(&self, metadata: &Metadata) -> usize {
        self.handlers
            .takers(metadata)
            .map_or(0, |takers| takers.handlers.len())
    }

    async fn handle_all(&self, message: &Message, mut pending: Vec<Pending<DB>>) -> Outcome {
        let mut complaint = Complaint::of(&self.health, &message.metadata);
        let mut retries = Retries::new(self.options.backoff);
        loop {
            let Some(failures) = self.round(message, &mut pending).await else {
                return Outcome::Stopped;
            };
            if pending.is_empty() {
                return Outcome::Done;
            }
            let Retry {
                wait,
                degrades_health,
            } = retries.after(&failures);
            if degrades_health {
                let reasons: Vec<_> = failures.iter().map(|f| f.reason.as_str()).collect();
                complaint.say(&format!(
                    "failed {} time(s) and is tried again: {}",
                    retries.rounds(),
                    reasons.join("; ")
                ));
            }
            tokio::select! {
                () = self.stop.cancelled() => return Outcome::Stopped,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Lets each pending consumer try once, and keeps those that failed. `None` when the consumer
    /// stops.
    async fn round(
        &self,
        message: &Message,
        pending: &mut Vec<Pending<DB>>,
    ) -> Option<Vec<Failure>> {
        let _permit = self
            .stop
            .run_until_cancelled(self.running.acquire())
            .await?
            .ok()?;
        let mut failures = Vec::new();
        let mut failed = Vec::new();
        for mut one in pending.drain(..) {
            if self.stop.is_cancelled() {
                return None;
            }
            match self.attempt(&one, message).await {
                Ok(Effect::Duplicate) if !one.is_in_doubt => self.counters.duplicates(1),
                // A lost answer was a commit after all, or the effect is committed now.
                Ok(_) => self.counters.handled(),
                Err(failure) => {
                    self.counters.failed_attempt();
                    one.is_in_doubt |= failure.is_in_doubt;
                    failures.push(failure);
                    failed.push(one);
                }
            }
        }
        *pending = failed;
        Some(failures)
    }

    async fn attempt(&self, pending: &Pending<DB>, message: &Message) -> Result<Effect, Failure> {
        let metadata = &message.metadata;
        let span = info_span!(
            "handle",
            consumer = pending.handler.registration.consumer,
            event_type = metadata.event_type,
            message_id = %metadata.message_id,
            correlation_id = metadata.correlation_id,
            traceparent = metadata.traceparent,
        );
        let result = self
            .transactor
            .attempt(pending.handler, message)
            .instrument(span.clone())
            .await;
        let _entered = span.enter();
        match &result {
            Ok(effect) => debug!(?effect, "message handled"),
            Err(failure) if failure.is_version_conflict => {
                debug!(reason = failure.reason, "version conflict; trying again");
            }
            Err(failure) => warn!(reason = failure.reason, "attempt failed; trying again"),
        }
        result
    }

    async fn unhandled(&self, metadata: &Metadata) -> Outcome {
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
                Outcome::Done
            }
            OnUnhandled::Fail => {
                self.hold(
                    metadata,
                    "is taken by no handler; deploy a program with one",
                )
                .await
            }
        }
    }

    async fn unreadable(&self, metadata: &Metadata, consumers: &[&str]) -> Outcome {
        for _ in consumers {
            self.counters.unreadable();
        }
        let consumers = consumers.join(", ");
        match self.options.on_unreadable {
            OnUnreadable::Discard => {
                warn!(
                    event_type = metadata.event_type,
                    schema_version = metadata.schema_version,
                    message_id = %metadata.message_id,
                    consumers,
                    "the version can't be read; the message is acknowledged and counted"
                );
                Outcome::Done
            }
            OnUnreadable::Hold => {
                let reason = format!(
                    "can't be read by {consumers}; deploy handlers that take v{}",
                    metadata.schema_version
                );
                self.hold(metadata, &reason).await
            }
        }
    }

    /// Keeps the message, and all behind it in its aggregate, until the consumer stops.
    async fn hold(&self, metadata: &Metadata, reason: &str) -> Outcome {
        error!(
            event_type = metadata.event_type,
            schema_version = metadata.schema_version,
            message_id = %metadata.message_id,
            reason,
            "message held"
        );
        let mut complaint = Complaint::of(&self.health, metadata);
        complaint.say(reason);
        self.stop.cancelled().await;
        Outcome::Stopped
    }
}

/// A message's reason for degraded health, withdrawn when the message is done or given back.
struct Complaint<'a> {
    health: &'a HealthHandle,
    part: String,
    subject: String,
    is_said: bool,
}

impl<'a> Complaint<'a> {
    fn of(health: &'a HealthHandle, metadata: &Metadata) -> Self {
        Self {
            health,
            part: format!("message {}", metadata.message_id),
            subject: format!(
                "message {} ({} v{})",
                metadata.message_id, metadata.event_type, metadata.schema_version
            ),
            is_said: false,
        }
    }

    fn say(&mut self, reason: &str) {
        self.is_said = true;
        self.health
            .degrade(&self.part, format!("{} {reason}", self.subject));
    }
}

impl Drop for Complaint<'_> {
    fn drop(&mut self) {
        if self.is_said {
            self.health.recover(&self.part);
        }
    }
}
