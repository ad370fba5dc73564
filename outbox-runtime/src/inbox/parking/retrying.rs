use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::troubles::Troubles;
use crate::error_text;
use crate::inbox::conflicts::Conflicts;
use crate::inbox::dispatch::Dispatcher;
use crate::inbox::failure::Failure;
use crate::inbox::handlers::linked_consumers;
use crate::inbox::transact::{Effect, Taken};
use crate::store::{Backend, Error};

/// How many parked messages are looked at at a time.
const HEADS: usize = 100;
/// From how many failed attempts on a message counts as a reason for degraded health.
const ATTEMPTS_TO_DEGRADE: u32 = 5;
/// How long a message that another instance has is left alone.
const REST: Duration = Duration::from_millis(200);
/// How often the parked messages are counted at most, since counting reads them all.
const COUNTING: Duration = Duration::from_millis(500);

/// Tries parked messages again as they become due, until the consumer stops; then finishes those
/// in work.
///
/// It looks when something was parked here, when the next is due, and now and then for what other
/// processes or an operator did.
pub(in crate::inbox) async fn retry_parked<DB: Backend>(dispatcher: Arc<Dispatcher<DB>>) {
    Retrying {
        consumers: dispatcher.handlers.consumers_and_nobody(),
        linked: linked_consumers(),
        troubles: Troubles::new(dispatcher.health.clone()),
        dispatcher,
        tasks: JoinSet::new(),
        in_work: HashMap::new(),
        failures: 0,
        counted_at: None,
        is_to_count: true,
    }
    .run()
    .await;
}

struct Retrying<DB: Backend> {
    dispatcher: Arc<Dispatcher<DB>>,
    consumers: Vec<&'static str>,
    /// The consumers of all handlers in the program, selected or not.
    linked: Vec<&'static str>,
    troubles: Troubles,
    /// One for each parked message that is being tried.
    tasks: JoinSet<Result<(), Error>>,
    in_work: HashMap<i64, Id>,
    /// How often in a row the database failed.
    failures: u32,
    counted_at: Option<Instant>,
    is_to_count: bool,
}

impl<DB: Backend> Retrying<DB> {
    async fn run(mut self) {
        let stop = self.dispatcher.stop.clone();
        let mut letters = self.dispatcher.parking.outbox.inner.letters.listen();
        loop {
            let pause = match stop.run_until_cancelled(self.look()).await {
                None => break,
                Some(Ok(pause)) => pause,
                Some(Err(error)) => self.failed(&error),
            };
            let changed = self.dispatcher.parking.changed.notified();
            tokio::select! {
                () = stop.cancelled() => break,
                () = changed => self.is_to_count = true,
                Ok(()) = letters.changed() => self.is_to_count = true,
                () = tokio::time::sleep(pause) => {}
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.is_to_count = true;
                    let (task, result) = match ended {
                        Ok((task, result)) => (task, result),
                        Err(error) => (error.id(), Ok(())),
                    };
                    self.in_work.retain(|_, other| *other != task);
                    if let Err(error) = result {
                        let pause = self.failed(&error);
                        stop.run_until_cancelled(tokio::time::sleep(pause)).await;
                    }
                }
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    /// Starts what is due and says when to look again.
    async fn look(&mut self) -> Result<Duration, Error> {
        let _at_work = self
            .dispatcher
            .health
            .at_work("the look at parked messages");
        let poll = self.dispatcher.options.poll_interval;
        let parking = &self.dispatcher.parking;
        let most = HEADS.saturating_add(self.in_work.len());
        let mut pause = poll;
        for head in parking.heads(&self.consumers, most).await? {
            if !head.wait.is_zero() {
                pause = pause.min(head.wait);
                break;
            }
            if let Entry::Vacant(entry) = self.in_work.entry(head.id) {
                let retry = retry(Arc::clone(&self.dispatcher), head.id);
                entry.insert(self.tasks.spawn(retry).id());
            }
        }
        let until_counting = self
            .counted_at
            .map_or(Duration::ZERO, |at| COUNTING.saturating_sub(at.elapsed()));
        let is_stale = self.counted_at.is_none_or(|at| at.elapsed() >= poll);
        if (self.is_to_count && until_counting.is_zero()) || is_stale {
            let troubles = parking
                .trouble(&self.consumers, &self.linked, ATTEMPTS_TO_DEGRADE)
                .await?;
            self.troubles.tell(&troubles);
            self.counted_at = Some(Instant::now());
            self.is_to_count = false;
        } else if self.is_to_count {
            pause = pause.min(until_counting);
        }
        if self.tasks.is_empty() {
            self.failures = 0;
        }
        Ok(pause)
    }

    fn failed(&mut self, error: &Error) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let reason = error_text::of_error(error);
        warn!(
            reason,
            failures = self.failures,
            "parked messages can't be tried again now"
        );
        self.troubles.tell_unreadable(&reason);
        self.is_to_count = true;
        self.dispatcher.options.backoff.delay(self.failures)
    }
}

/// Tries one parked message: taking it out, its inbox row and its effect are one transaction.
///
/// Fails only where not even the failure could be recorded; the message is due again then.
async fn retry<DB: Backend>(dispatcher: Arc<Dispatcher<DB>>, id: i64) -> Result<(), Error> {
    let turn = dispatcher.turns.next();
    let Some(Some(turn)) = dispatcher.stop.run_until_cancelled(turn).await else {
        return Ok(());
    };
    let mut conflicts = Conflicts::default();
    loop {
        let Some(taken) = dispatcher.transactor.take_out(id).await? else {
            debug!(id, "another instance has the parked message");
            dispatcher.transactor.spare.rest().await;
            drop(turn);
            // Until it is done with it the message stays due.
            let rest = tokio::time::sleep(REST);
            dispatcher.stop.run_until_cancelled(rest).await;
            return Ok(());
        };
        let Taken {
            transaction,
            parked,
        } = taken;
        let metadata = &parked.message.metadata;
        let takers = dispatcher.handlers.takers(metadata);
        if let (true, Some(takers)) = (parked.consumer.is_empty(), takers) {
            let parking = &dispatcher.parking;
            return parking
                .hand_out(transaction, &parked.message, &takers)
                .await;
        }
        let failure = match dispatcher.handlers.of(&parked.consumer, metadata) {
            Some(handler) => {
                let number = parked.attempts.saturating_add(1);
                let attempt =
                    dispatcher.attempt_parked(transaction, handler, &parked.message, number);
                match attempt.await {
                    Ok(Effect::Committed) => {
                        dispatcher.counters.handled();
                        return Ok(());
                    }
                    Ok(Effect::Duplicate | Effect::Parked) => {
                        dispatcher.counters.duplicate(&parked.consumer);
                        return Ok(());
                    }
                    Err(failure) => failure,
                }
            }
            None => {
                transaction.rollback().await?;
                Failure::without_handler(metadata)
            }
        };
        dispatcher.counters.failed_attempt();
        if let Some(wait) = conflicts.after(&failure) {
            dispatcher.counters.metrics.retried(&parked.consumer);
            tokio::time::sleep(wait).await;
            continue;
        }
        let is_recorded = dispatcher.parking.failed_again(&parked, &failure).await?;
        if !is_recorded && failure.is_in_doubt {
            // Only the answer was lost: the commit has taken the row away.
            dispatcher.counters.handled();
        }
        return Ok(());
    }
}
