use std::time::Duration;

use outbox_runtime::Metadata;
use outbox_runtime::prelude::*;
use outbox_tests::bank::{AccountId, Deposited};
use outbox_tests::faults::{FaultDb, Plan, Sabotage};

/// A deposit was entered into the ledger.
#[domain_event(version = 1, name = "ledger.entered")]
pub(crate) struct Entered {
    pub(crate) account_id: AccountId,
}

/// What the ledger knows of an account.
#[aggregate(table = "ledger", events(Entered))]
pub(crate) struct Ledger {
    id: AccountId,
    entries: i64,
    root: AggregateRoot,
}

/// A database that stores what the workers work with.
pub(crate) trait WorkDb: FaultDb + Stores<Ledger> {}

impl<DB: FaultDb + Stores<Ledger>> WorkDb for DB {}

/// How the handlers behave.
#[derive(Clone)]
pub(crate) struct Conduct {
    delay: Duration,
    are_slow: u32,
    fail: u32,
    panic: u32,
    minds_poison: bool,
    sabotage: Option<Sabotage>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the handler fails by chance")]
    Chance,
    #[error("the handler can't take this account")]
    Poison,
    #[error(transparent)]
    Store(#[from] outbox_runtime::Error),
    #[error("the handler's own SQL failed")]
    Sql(#[from] sqlx::Error),
}

#[idempotent_handler(consumer = "faults.ledger", key = "{message_id}")]
async fn enter<DB: WorkDb>(
    event: Envelope<Deposited>,
    uow: &mut UnitOfWork<'_, DB>,
    State(conduct): State<Conduct>,
) -> Result<(), Failure> {
    conduct.before(&event.metadata, uow).await?;
    let found = uow.find::<Ledger>(&event.account_id).await?;
    let is_new = found.is_none();
    let mut ledger = found.unwrap_or_else(|| Ledger {
        id: event.account_id.clone(),
        entries: 0,
        root: AggregateRoot::new(),
    });
    ledger.entries += 1;
    ledger.raise(Entered {
        account_id: event.account_id.clone(),
    });
    let connection = uow.connection().await?;
    DB::record(&mut *connection, "faults.ledger", &event.metadata).await?;
    // Each time: few messages of a run are delivered twice, and one in ten missed them all at times.
    if conduct.sabotage == Some(Sabotage::ForgetsInboxRows) {
        DB::forget(connection, "faults.ledger", &event.metadata).await?;
    }
    if is_new {
        uow.add(&mut ledger).await?;
    } else {
        uow.save(&mut ledger).await?;
    }
    conduct.after()
}

#[idempotent_handler(consumer = "faults.audit", key = "{message_id}")]
async fn audit<DB: WorkDb>(
    event: Envelope<Entered>,
    uow: &mut UnitOfWork<'_, DB>,
    State(conduct): State<Conduct>,
) -> Result<(), Failure> {
    conduct.before(&event.metadata, uow).await?;
    let connection = uow.connection().await?;
    DB::record(connection, "faults.audit", &event.metadata).await?;
    conduct.after()
}

impl Conduct {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            delay: plan.handler_delay,
            are_slow: plan.handlers_are_slow,
            fail: plan.handlers_fail,
            panic: plan.handlers_panic,
            minds_poison: plan.minds_poison,
            sabotage: plan.sabotage,
        }
    }

    async fn before<DB: WorkDb>(
        &self,
        metadata: &Metadata,
        uow: &mut UnitOfWork<'_, DB>,
    ) -> Result<(), Failure> {
        if fastrand::u32(0..1000) < self.are_slow {
            tokio::time::sleep(self.delay).await;
        }
        self.may_fail()?;
        let Some(aggregate) = metadata.aggregate.as_ref().filter(|_| self.minds_poison) else {
            return Ok(());
        };
        match DB::is_poisoned(uow.connection().await?, &aggregate.aggregate_id).await? {
            true => Err(Failure::Poison),
            false => Ok(()),
        }
    }

    fn after(&self) -> Result<(), Failure> {
        self.may_fail()
    }

    fn may_fail(&self) -> Result<(), Failure> {
        // There are two chances of each in an attempt.
        if fastrand::u32(0..2000) < self.panic {
            panic!("the handler panics by chance");
        }
        match fastrand::u32(0..2000) < self.fail {
            true => Err(Failure::Chance),
            false => Ok(()),
        }
    }
}
