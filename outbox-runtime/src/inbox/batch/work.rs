use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use time::OffsetDateTime;
use tracing::{debug, field};

use super::attempt::{BatchFailure, Unit};
use super::ready::{Task, Worker};
use crate::domain::Message;
use crate::error_text;
use crate::inbox::crew::{Hands, acknowledge_all};
use crate::inbox::dispatch::{Dispatcher, Start, tell_settled};
use crate::inbox::failure::Failure;
use crate::inbox::handlers::Handler;
use crate::inbox::lanes::{Answer, Job, OpenLane};
use crate::inbox::transact::key_of;
use crate::inbox::turns::Turn;
use crate::store::Backend;
use crate::telemetry::metrics::Timer;
use crate::telemetry::spans;

/// Handles what is ready, batch after batch, until nothing is or the consumer stops.
pub(in crate::inbox) async fn work<DB: Backend>(hands: Arc<Hands<DB>>, mut worker: Worker) {
    let dispatcher = &hands.dispatcher;
    loop {
        let turn = dispatcher.stop.run_until_cancelled(dispatcher.turns.next());
        let Some(Some(turn)) = turn.await else {
            worker.ready.clear();
            dispatcher.transactor.spare.rest().await;
            return;
        };
        let Some(tasks) = worker.take() else {
            dispatcher.transactor.spare.rest().await;
            return;
        };
        handle(&hands, &worker, tasks, turn).await;
    }
}

/// Handles the messages together, where that is possible.
async fn handle<DB: Backend>(
    hands: &Arc<Hands<DB>>,
    worker: &Worker,
    tasks: Vec<Task>,
    turn: Turn,
) {
    let dispatcher = &hands.dispatcher;
    let Sorted {
        together,
        unanswered,
        again,
        mut alone,
    } = Sorted::of(dispatcher, tasks);
    let mut turn = Some(turn);
    let mut is_in_doubt = false;
    let mut repeated = Vec::new();
    let count = together.len();
    if count > 1 {
        let failed = attempt(dispatcher, &together).await;
        // Others get the turn before the broker is told.
        turn = None;
        match failed {
            None => {
                worker.ready.went_well(count);
                hands.spawn(finish(Arc::clone(hands), unanswered));
            }
            Some(failure) => {
                worker.ready.failed(count);
                is_in_doubt = failure.is_in_doubt;
                repeated.extend(tasks_of(together, unanswered));
            }
        }
    } else {
        worker.ready.went_well(count);
        alone.extend(tasks_of(together, unanswered));
    }
    let repeated = repeated.into_iter().map(|task| (task, is_in_doubt));
    for (task, is_in_doubt) in alone.into_iter().map(|task| (task, false)).chain(repeated) {
        let start = Start {
            turn: turn.take(),
            is_in_doubt,
        };
        hands.spawn(Arc::clone(hands).handle_alone(task, start));
    }
    for task in again {
        hands.handle(task);
    }
}

/// Handles the messages in one transaction, tells how that ended, and answers why nothing of it is
/// there, if so.
async fn attempt<DB: Backend>(
    dispatcher: &Dispatcher<DB>,
    together: &[Claimable<DB>],
) -> Option<Failure> {
    let (metrics, timer) = (&dispatcher.counters.metrics, Timer::start());
    let units: Vec<_> = together.iter().flat_map(Claimable::units).collect();
    match dispatcher.transactor.attempt_all(&units).await {
        Ok(effects) => {
            for (unit, effect) in units.iter().zip(effects) {
                let registration = unit.handler.registration;
                let (consumer, event_type) = (registration.consumer, registration.event_type);
                let outcome = tell_settled(&unit.span, effect);
                metrics.attempted(consumer, event_type, outcome, &timer);
                dispatcher.count(effect, unit.handler, unit.published_at);
            }
            dispatcher.counters.batch(together.len());
            None
        }
        Err(BatchFailure { failure, culprit }) => {
            for unit in &units {
                spans::outcome(&unit.span, "rolled_back");
            }
            // What fails again alone is told and counted then.
            let culprit = culprit.and_then(|place| units.get(place));
            let payload = culprit.map(|unit| &*unit.message.payload);
            debug!(
                reason = error_text::cause(&failure.reason, payload),
                message_id = culprit.map(|unit| field::display(unit.message.metadata.message_id)),
                messages = together.len(),
                "a batch was rolled back; its messages are handled one by one"
            );
            dispatcher.counters.batch_rolled_back(together.len());
            Some(failure)
        }
    }
}

/// Tells the broker, and lets the lanes go on.
async fn finish<DB: Backend>(hands: Arc<Hands<DB>>, unanswered: Vec<Unanswered>) {
    let patience = hands.dispatcher.options.broker_timeout;
    let (answers, lanes): (Vec<_>, Vec<_>) = unanswered
        .into_iter()
        .map(|unanswered| (unanswered.answers, unanswered.lane))
        .unzip();
    acknowledge_all(answers.into_iter().flatten(), patience).await;
    let mut late = Vec::new();
    for mut lane in lanes {
        let (joined, next) = lane.advance();
        late.extend(joined);
        if let Some(job) = next {
            hands.handle(Task { job, lane });
        }
    }
    acknowledge_all(late, patience).await;
}

/// How the messages that were taken are handled.
struct Sorted<DB: Backend> {
    /// In one transaction, and who is to hear of each.
    together: Vec<Claimable<DB>>,
    unanswered: Vec<Unanswered>,
    /// In a later batch: they share a key with one of this.
    again: Vec<Task>,
    /// By themselves: they are no messages, or nobody takes them, or somebody can't read them, or a key can't be told.
    alone: Vec<Task>,
}

/// A message with the keys by which its consumers know it.
struct Claimable<DB: Backend> {
    message: Message,
    published_at: Option<OffsetDateTime>,
    keys: Vec<(Handler<DB>, String)>,
}

/// Who waits for the end of a message: the broker and its lane.
struct Unanswered {
    answers: Vec<Answer>,
    lane: OpenLane,
}

impl<DB: Backend> Sorted<DB> {
    fn of(dispatcher: &Dispatcher<DB>, tasks: Vec<Task>) -> Self {
        let mut sorted = Self {
            together: Vec::with_capacity(tasks.len()),
            unanswered: Vec::with_capacity(tasks.len()),
            again: Vec::new(),
            alone: Vec::new(),
        };
        let mut seen = HashSet::new();
        for task in tasks {
            let Some(keys) = keys(dispatcher, &task.job) else {
                sorted.alone.push(task);
                continue;
            };
            let mut of_consumers = keys
                .iter()
                .map(|(handler, key)| (handler.registration.consumer, key.clone()));
            if of_consumers.clone().any(|key| seen.contains(&key)) {
                sorted.again.push(task);
            } else {
                seen.extend(&mut of_consumers);
                let Task { job, lane } = task;
                let answers = job.answers;
                sorted.unanswered.push(Unanswered { answers, lane });
                sorted.together.push(Claimable {
                    message: job.message,
                    published_at: job.published_at,
                    keys,
                });
            }
        }
        sorted
    }
}

impl<DB: Backend> Claimable<DB> {
    /// One for each of its consumers.
    fn units(&self) -> impl Iterator<Item = Unit<'_, DB>> {
        self.keys
            .iter()
            .map(|(handler, key)| Unit::new(*handler, &self.message, self.published_at, key))
    }
}

/// The messages as they were taken.
fn tasks_of<DB: Backend>(
    together: Vec<Claimable<DB>>,
    unanswered: Vec<Unanswered>,
) -> impl Iterator<Item = Task> {
    together
        .into_iter()
        .zip(unanswered)
        .map(|(claimable, unanswered)| Task {
            job: Job {
                message: claimable.message,
                published_at: claimable.published_at,
                malformed: None,
                answers: unanswered.answers,
            },
            lane: unanswered.lane,
        })
}

/// The keys of all consumers of the message, if each of them can handle it.
fn keys<DB: Backend>(dispatcher: &Dispatcher<DB>, job: &Job) -> Option<Vec<(Handler<DB>, String)>> {
    if job.malformed.is_some() {
        return None;
    }
    let message = &job.message;
    let takers = dispatcher.handlers.takers(&message.metadata)?;
    if takers.handlers.is_empty() || !takers.unable.is_empty() {
        return None;
    }
    takers
        .handlers
        .into_iter()
        .map(|handler| {
            // A key is made of the event, which is the user's code. Alone, its panic is told.
            let key = catch_unwind(AssertUnwindSafe(|| key_of(handler, message)));
            Some((handler, key.ok()?.ok()?))
        })
        .collect()
}
