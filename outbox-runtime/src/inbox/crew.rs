use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::consumer::ConsumerError;
use super::dispatch::{Dispatcher, Outcome};
use super::lanes::{Answer, Job, Lanes, OpenLane, Taken};
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
    dispatcher: Arc<Dispatcher<DB>>,
    lanes: Arc<Lanes>,
    pub(super) places: Places,
    tasks: TaskTracker,
    /// Cancels the tasks, also when the run itself is dropped.
    abort: DropGuard,
}

impl<DB: Backend> Crew<DB> {
    pub(super) fn new(dispatcher: Dispatcher<DB>) -> Self {
        Self {
            lanes: Arc::default(),
            places: Places::new(
                dispatcher.options.prefetch,
                dispatcher.options.prefetch_bytes,
            ),
            tasks: TaskTracker::new(),
            abort: CancellationToken::new().drop_guard(),
            dispatcher: Arc::new(dispatcher),
        }
    }

    /// Tries parked messages again until the consumer stops.
    pub(super) fn retry_parked(&self) {
        let abort = self.abort.token().clone();
        let retrying = retry_parked(Arc::clone(&self.dispatcher));
        self.tasks
            .spawn(async move { abort.run_until_cancelled_owned(retrying).await });
    }

    /// Has the message handled, after those of its lane that came before.
    pub(super) fn take(&self, delivery: Delivery, place: Place) {
        let takers = self.dispatcher.handlers.takers(&delivery.message.metadata);
        match self.lanes.take(delivery, place) {
            Taken::First(job, lane) => {
                let abort = self.abort.token().clone();
                let work = work(Arc::clone(&self.dispatcher), job, lane);
                self.tasks
                    .spawn(async move { abort.run_until_cancelled_owned(work).await });
            }
            Taken::Joined => {
                let takers = takers.map(|takers| takers.handlers).unwrap_or_default();
                self.dispatcher.count_joined(&takers);
            }
            Taken::Waiting => {}
        }
    }

    /// Waits until the messages in work are done, and cancels them at the deadline.
    pub(super) async fn finish(&self, deadline: Duration) -> Result<(), ConsumerError> {
        self.tasks.close();
        if timeout(deadline, self.tasks.wait()).await.is_ok() {
            return Ok(());
        }
        let unfinished = self.tasks.len();
        self.abort.token().cancel();
        let _ = timeout(CANCELLED_WAIT, self.tasks.wait()).await;
        Err(ConsumerError::Deadline {
            deadline,
            unfinished,
        })
    }
}

/// Handles the messages of one lane one after another, until none waits or the consumer stops.
async fn work<DB: Backend>(dispatcher: Arc<Dispatcher<DB>>, first: Job, mut lane: OpenLane) {
    let mut job = first;
    loop {
        let published_at = job.published_at();
        let (message, answers) = job.into_parts();
        if dispatcher.handle(&message, published_at).await == Outcome::Stopped {
            return;
        }
        let patience = dispatcher.options.broker_timeout;
        acknowledge(answers, patience).await;
        let (joined, next) = lane.advance();
        acknowledge(joined, patience).await;
        match next {
            Some(next) => job = next,
            None => return,
        }
    }
}

async fn acknowledge(answers: Vec<Answer>, patience: Duration) {
    for answer in answers {
        if fault::at(Point::BeforeAck).await.is_err() {
            continue;
        }
        let reason = match timeout(patience, answer.ack()).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error_text::of_error(&error),
            Err(_) => format!("no answer in {patience:?}"),
        };
        warn!(
            reason,
            "the broker was not told of a handled message; the inbox absorbs its redelivery"
        );
    }
}
