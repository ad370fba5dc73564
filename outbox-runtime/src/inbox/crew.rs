use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::batch::{self, Ready, Task};
use super::consumer::ConsumerError;
use super::dispatch::{Dispatcher, Outcome, Start};
use super::lanes::{Answer, Job, Lanes, Taken};
use super::parking::retry_parked;
use super::places::{Place, Places};
use crate::broker::Delivery;
use crate::error_text;
use crate::fault::{self, Point};
use crate::store::Backend;

/// How long tasks that were cancelled get to notice it.
const CANCELLED_WAIT: Duration = Duration::from_secs(1);

/// The tasks of one run.
pub(super) struct Crew<DB: Backend> {
    hands: Arc<Hands<DB>>,
    lanes: Arc<Lanes>,
    pub(super) places: Places,
    /// Cancels the tasks, also when the run itself is dropped.
    abort: DropGuard,
}

/// What the tasks of one run share.
pub(super) struct Hands<DB: Backend> {
    pub(super) dispatcher: Arc<Dispatcher<DB>>,
    /// The messages for the next batches, where there are batches.
    ready: Option<Arc<Ready>>,
    tasks: TaskTracker,
    abort: CancellationToken,
}

impl<DB: Backend> Crew<DB> {
    pub(super) fn new(dispatcher: Dispatcher<DB>, concurrency: usize) -> Self {
        let options = &dispatcher.options;
        let places = Places::new(options.prefetch, options.prefetch_bytes);
        let ready = (options.batch > 1).then(|| {
            let turns = Arc::clone(&dispatcher.turns);
            Arc::new(Ready::new(options.batch, concurrency, turns))
        });
        let abort = CancellationToken::new();
        Self {
            hands: Arc::new(Hands {
                dispatcher: Arc::new(dispatcher),
                ready,
                tasks: TaskTracker::new(),
                abort: abort.clone(),
            }),
            lanes: Arc::default(),
            places,
            abort: abort.drop_guard(),
        }
    }

    /// Tries parked messages again until the consumer stops.
    pub(super) fn retry_parked(&self) {
        let dispatcher = Arc::clone(&self.hands.dispatcher);
        self.hands.spawn(retry_parked(dispatcher));
    }

    /// Has the message handled, after those of its lane that came before.
    pub(super) fn take(&self, delivery: Delivery, place: Place) {
        match self.lanes.take(delivery, place) {
            Taken::First(job, lane) => self.hands.handle(Task { job, lane }),
            Taken::Joined(message) => self.hands.dispatcher.count_joined(&message.metadata),
            Taken::Waiting => {}
        }
    }

    /// Waits until the messages in work are done, and cancels them at the deadline.
    pub(super) async fn finish(&self, deadline: Duration) -> Result<(), ConsumerError> {
        let tasks = &self.hands.tasks;
        tasks.close();
        if timeout(deadline, tasks.wait()).await.is_ok() {
            return Ok(());
        }
        let unfinished = tasks.len().max(self.lanes.len());
        self.abort.token().cancel();
        let _ = timeout(CANCELLED_WAIT, tasks.wait()).await;
        Err(ConsumerError::Deadline {
            deadline,
            unfinished,
        })
    }
}

impl<DB: Backend> Hands<DB> {
    /// Has the message handled as soon as there is a turn.
    pub(super) fn handle(self: &Arc<Self>, task: Task) {
        match &self.ready {
            None => self.spawn(Arc::clone(self).handle_alone(task, Start::default())),
            Some(ready) => {
                if let Some(worker) = ready.push(task) {
                    self.spawn(batch::work(Arc::clone(self), worker));
                }
            }
        }
    }

    /// Handles a message alone, and then those that follow in its lane, until none waits or the
    /// consumer stops. Where there are batches, the next one goes into a batch again.
    pub(super) async fn handle_alone(self: Arc<Self>, task: Task, mut start: Start) {
        let Task { mut job, mut lane } = task;
        loop {
            let Job {
                message,
                published_at,
                malformed,
                answers,
            } = job;
            let mut start = std::mem::take(&mut start);
            if start.turn.is_none() {
                let turn = self.dispatcher.turns.next();
                let Some(turn) = self.dispatcher.stop.run_until_cancelled(turn).await else {
                    return;
                };
                start.turn = turn;
            }
            // Handling has a large future, of which only those need one that have a turn.
            let handling = self
                .dispatcher
                .handle(&message, published_at, malformed, start);
            let handling = Box::pin(handling);
            if handling.await == Outcome::Stopped {
                return;
            }
            let patience = self.dispatcher.options.broker_timeout;
            acknowledge(answers, patience).await;
            let (joined, next) = lane.advance();
            acknowledge(joined, patience).await;
            match next {
                Some(job) if self.ready.is_some() => return self.handle(Task { job, lane }),
                Some(next) => job = next,
                None => return,
            }
        }
    }

    /// Runs a task until it ends or is cancelled at the deadline.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abort = self.abort.clone();
        self.tasks
            .spawn(async move { abort.run_until_cancelled_owned(task).await });
    }
}

async fn acknowledge(answers: Vec<Answer>, patience: Duration) {
    for answer in answers {
        acknowledge_one(answer, patience).await;
    }
}

/// Tells the broker of many messages at once: it answers each.
pub(super) async fn acknowledge_all(answers: impl IntoIterator<Item = Answer>, patience: Duration) {
    let answers = answers.into_iter();
    join_all(answers.map(|answer| acknowledge_one(answer, patience))).await;
}

async fn acknowledge_one(answer: Answer, patience: Duration) {
    if fault::at(Point::BeforeAck).await.is_err() {
        return;
    }
    let reason = match timeout(patience, answer.ack()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error_text::of_error(&error),
        Err(_) => format!("no answer in {patience:?}"),
    };
    warn!(
        reason,
        "the broker was not told of a handled message; the inbox absorbs its redelivery"
    );
}
