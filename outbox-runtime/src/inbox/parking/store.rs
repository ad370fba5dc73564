use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use tokio::sync::Notify;

use crate::domain::Message;
use crate::fault::{self, Point};
use crate::handler::FailureKind;
use crate::inbox::counters::Counters;
use crate::inbox::failure::{Failure, unreadable};
use crate::inbox::handlers::{Handler, Takers};
use crate::inbox::options::ConsumerOptions;
use crate::inbox::spare::Spare;
use crate::retry::Verdict;
use crate::store::{
    Backend, Error, FailedAgain, Parked, ParkedHead, ParkedState, TakenOut, ToSetAside, Trouble,
};
use crate::unit_of_work::{Outbox, WriteTransaction};

/// Sets messages aside and writes down what became of them, each in a transaction of its own.
pub(in crate::inbox) struct Parking<DB: Backend> {
    pub(in crate::inbox) outbox: Outbox<DB>,
    pub(in crate::inbox) spare: Arc<Spare<DB>>,
    pub(in crate::inbox) queries: Arc<DB::InboxQueries>,
    pub(in crate::inbox) options: ConsumerOptions,
    pub(in crate::inbox) counters: Counters,
    /// Tells the retries of this process that there is something to look at.
    pub(in crate::inbox) changed: Notify,
}

impl<DB: Backend> Parking<DB> {
    /// Parks a message whose first attempt failed.
    pub(in crate::inbox) async fn failed(
        &self,
        handler: Handler<DB>,
        message: &Message,
        failure: &Failure,
    ) -> Result<Parked, Error> {
        let consumer = handler.registration.consumer;
        let key = (handler.registration.key)(message).ok();
        let next = self.next(consumer, failure, 1, Duration::ZERO);
        self.park(ToSetAside {
            consumer,
            idempotency_key: key.as_deref(),
            message,
            state: next.state,
            holds: next.holds,
            wait: next.wait,
            cause: Some(&failure.reason),
        })
        .await
    }

    /// Parks a message that nobody can handle here.
    pub(in crate::inbox) async fn dead(
        &self,
        consumer: &str,
        message: &Message,
        cause: &str,
    ) -> Result<Parked, Error> {
        self.park(self.as_dead(consumer, message, cause)).await
    }

    /// Records that a parked message failed again; `false` if it is not parked any more.
    pub(in crate::inbox) async fn failed_again(
        &self,
        parked: &TakenOut,
        failure: &Failure,
    ) -> Result<bool, Error> {
        let attempt = parked.attempts.saturating_add(1);
        let next = self.next(&parked.consumer, failure, attempt, parked.age);
        let mut transaction = self.spare.begin_looked_at().await?;
        let failed = FailedAgain {
            id: parked.id,
            attempts: parked.attempts,
            state: next.state,
            holds: next.holds,
            wait: next.wait,
            cause: &failure.reason,
        };
        let is_recorded = DB::failed_again(transaction.connection(), &self.queries, failed).await?;
        transaction.commit().await?;
        if is_recorded && next.state == ParkedState::Dead {
            self.counters.dead(&parked.consumer);
        } else if is_recorded {
            self.counters.metrics.retried(&parked.consumer);
        }
        Ok(is_recorded)
    }

    /// Puts a message that no handler took in the way of all consumers that take it by now.
    pub(in crate::inbox) async fn hand_out(
        &self,
        mut transaction: WriteTransaction<DB>,
        message: &Message,
        takers: &Takers<DB>,
    ) -> Result<(), Error> {
        for handler in &takers.handlers {
            let key = (handler.registration.key)(message).ok();
            let waiting = waiting(handler, key.as_deref(), message);
            DB::set_aside(transaction.connection(), &self.queries, waiting).await?;
        }
        for consumer in &takers.unable {
            let cause = unreadable(&message.metadata);
            let dead = self.as_dead(consumer, message, &cause);
            DB::set_aside(transaction.connection(), &self.queries, dead).await?;
        }
        transaction.commit().await
    }

    pub(in crate::inbox) async fn heads(
        &self,
        consumers: &[&str],
        most: usize,
    ) -> Result<Vec<ParkedHead>, Error> {
        let mut connection = self.connection().await?;
        DB::parked_heads(&mut connection, &self.queries, consumers, most).await
    }

    pub(in crate::inbox) async fn trouble(
        &self,
        consumers: &[&str],
        linked: &[&str],
        attempts: u32,
    ) -> Result<Vec<Trouble>, Error> {
        let mut connection = self.connection().await?;
        DB::trouble(&mut connection, &self.queries, consumers, linked, attempts).await
    }

    async fn connection(&self) -> Result<PoolConnection<DB>, Error> {
        self.outbox.connection().await
    }

    async fn park(&self, to_set_aside: ToSetAside<'_>) -> Result<Parked, Error> {
        let passed = fault::at(Point::BeforePark).await;
        passed.map_err(|fault| Error::database("parking a message")(fault.into()))?;
        let mut transaction = self.spare.begin_looked_at().await?;
        let parked = DB::set_aside(transaction.connection(), &self.queries, to_set_aside).await?;
        transaction.commit().await?;
        if parked == Parked::Now {
            let consumer = to_set_aside.consumer;
            self.counters.parked(consumer);
            match to_set_aside.state {
                ParkedState::Dead => self.counters.dead(consumer),
                ParkedState::Failing => self.counters.metrics.retried(consumer),
                ParkedState::Waiting => {}
            }
            self.changed.notify_one();
        }
        Ok(parked)
    }

    fn as_dead<'a>(
        &self,
        consumer: &'a str,
        message: &'a Message,
        cause: &'a str,
    ) -> ToSetAside<'a> {
        ToSetAside {
            consumer,
            idempotency_key: None,
            message,
            state: ParkedState::Dead,
            holds: self.options.policy(consumer).waits_behind_dead(),
            wait: Duration::ZERO,
            cause: Some(cause),
        }
    }

    fn next(&self, consumer: &str, failure: &Failure, attempt: u32, age: Duration) -> Next {
        let policy = self.options.policy(consumer);
        let is_permanent = failure.kind == FailureKind::Permanent;
        match policy.after(is_permanent, attempt, age, self.options.backoff) {
            Verdict::Retry(wait) => Next {
                state: ParkedState::Failing,
                holds: true,
                wait,
            },
            Verdict::Dead => Next {
                state: ParkedState::Dead,
                holds: policy.waits_behind_dead(),
                wait: Duration::ZERO,
            },
        }
    }
}

struct Next {
    state: ParkedState,
    holds: bool,
    wait: Duration,
}

/// A message that waits behind another of its lane.
pub(in crate::inbox) const fn waiting<'a, DB: Backend>(
    handler: &Handler<DB>,
    idempotency_key: Option<&'a str>,
    message: &'a Message,
) -> ToSetAside<'a> {
    ToSetAside {
        consumer: handler.registration.consumer,
        idempotency_key,
        message,
        state: ParkedState::Waiting,
        holds: true,
        wait: Duration::ZERO,
        cause: None,
    }
}
