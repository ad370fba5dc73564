use time::OffsetDateTime;
use tracing::{Instrument, Span};

use crate::domain::Message;
use crate::fault::{self, Point};
use crate::inbox::failure::Failure;
use crate::inbox::handlers::Handler;
use crate::inbox::spare::{Open, give_back};
use crate::inbox::transact::{Effect, Transactor, catching_panics, claim_of};
use crate::store::{Backend, Claim, Claimed, Error};
use crate::telemetry::metrics::Timer;
use crate::telemetry::spans;
use crate::unit_of_work::Written;

/// One message for one consumer.
pub(super) struct Unit<'a, DB: Backend> {
    pub(super) handler: Handler<DB>,
    pub(super) message: &'a Message,
    pub(super) published_at: Option<OffsetDateTime>,
    pub(super) span: Span,
    key: &'a str,
    lane: String,
}

impl<'a, DB: Backend> Unit<'a, DB> {
    pub(super) fn new(
        handler: Handler<DB>,
        message: &'a Message,
        published_at: Option<OffsetDateTime>,
        key: &'a str,
    ) -> Self {
        let metadata = &message.metadata;
        Self {
            handler,
            message,
            published_at,
            // The retry policy counts the attempt that follows alone, if this one fails, as the first.
            span: spans::handle(metadata, handler.registration.consumer, 1),
            key,
            lane: metadata.lane(),
        }
    }
}

/// Why nothing of a batch is there.
pub(super) struct BatchFailure {
    pub(super) failure: Failure,
    /// Whose handler failed, if one did: its place among the units.
    pub(super) culprit: Option<usize>,
}

impl From<Failure> for BatchFailure {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            culprit: None,
        }
    }
}

impl<DB: Backend> Transactor<DB> {
    /// Gives all units their effects in one transaction, or none of them. No two have the same
    /// consumer and key.
    pub(super) async fn attempt_all(
        &self,
        units: &[Unit<'_, DB>],
    ) -> Result<Vec<Effect>, BatchFailure> {
        let (open, claimed) = catching_panics(self.claim_all(units)).await?;
        let Open {
            mut transaction,
            uses,
        } = open;
        if claimed.iter().all(|&claimed| claimed == Claimed::Duplicate) {
            give_back(transaction).await;
            return Ok(vec![Effect::Duplicate; units.len()]);
        }
        let timer = Timer::start();
        let mut written = Written::default();
        let mut effects = Vec::with_capacity(units.len());
        for (place, (unit, claimed)) in units.iter().zip(claimed).enumerate() {
            let (handler, message) = (unit.handler, unit.message);
            let effect = match claimed {
                Claimed::Duplicate => Effect::Duplicate,
                Claimed::Held => {
                    self.set_aside(&mut transaction, handler, message, unit.key)
                        .await?
                }
                Claimed::First => {
                    let handling = async {
                        let mut unit_of_work = self.begin_handling(transaction, message).await?;
                        self.call(handler, message, &mut unit_of_work).await?;
                        let left = unit_of_work.leave().await;
                        left.map_err(|error| Failure::of_store(&error))
                    };
                    let left = catching_panics(handling)
                        .instrument(unit.span.clone())
                        .await;
                    let left = left.map_err(|failure| BatchFailure {
                        failure,
                        culprit: Some(place),
                    })?;
                    transaction = left.transaction;
                    written.add(left.written);
                    Effect::Committed
                }
            };
            effects.push(effect);
        }
        let uses = Some(uses).filter(|&uses| self.spare.wants(uses));
        let ending = async {
            passed(Point::BeforeCommit).await?;
            let kept = transaction.end(uses.is_some(), written.is_lent).await?;
            if let (Some(transaction), Some(uses)) = (kept, uses) {
                self.spare.keep(transaction, uses);
            }
            passed(Point::AfterCommit).await
        };
        let ended = ending.await;
        let outcome = ended.as_ref().map_or("transient", |()| "committed");
        self.outbox.tell_of_commit(outcome, written, &timer);
        ended.map_err(|error| Failure::of_commit(&error))?;
        Ok(effects)
    }

    /// Claims all by one statement, in the order of their keys, and answers in their own order.
    async fn claim_all(&self, units: &[Unit<'_, DB>]) -> Result<(Open<DB>, Vec<Claimed>), Failure> {
        let mut by_key: Vec<_> = units.iter().enumerate().collect();
        by_key.sort_unstable_by_key(|(_, unit)| (unit.handler.registration.consumer, unit.key));
        let claims: Vec<Claim<'_>> = by_key
            .iter()
            .map(|(_, unit)| claim_of(unit.handler, unit.message, unit.key, Some(&unit.lane)))
            .collect();
        let store = |error| Failure::of_store(&error);
        let mut open = self.spare.begin().await.map_err(store)?;
        let connection = open.transaction.connection();
        let mut claimed = DB::claim_all(connection, &self.queries, &claims).await;
        if claimed.is_err() && open.uses.is_kept() {
            let instead = self.spare.begin_instead(open.transaction);
            open = instead.await.map_err(store)?;
            let connection = open.transaction.connection();
            claimed = DB::claim_all(connection, &self.queries, &claims).await;
        }
        let claimed = claimed.map_err(store)?;
        let mut claimed: Vec<_> = by_key.iter().map(|(place, _)| place).zip(claimed).collect();
        claimed.sort_unstable_by_key(|(place, _)| *place);
        let claimed = claimed.into_iter().map(|(_, claimed)| claimed).collect();
        Ok((open, claimed))
    }
}

async fn passed(point: Point) -> Result<(), Error> {
    let passed = fault::at(point).await.map_err(sqlx::Error::from);
    passed.map_err(Error::database("committing"))
}
