use std::time::Duration;

use outbox_runtime::prelude::*;
use outbox_runtime::{Error, is_version_conflict};
use outbox_tests::bank::{Account, AccountId};
use outbox_tests::faults::{Plan, Sabotage, account, room};

use crate::handlers::WorkDb;

/// Units of work between two looks whether to go on.
const LOOK: u32 = 8;

/// Writes until it is enough. Whatever fails is as if it had not been tried.
pub(crate) async fn write<DB: WorkDb>(outbox: Outbox<DB>, plan: Plan, number: usize) {
    // Writers differ, and so do the workers.
    let mut dice = fastrand::Rng::new();
    let rest = u64::try_from(plan.rest.as_micros()).unwrap_or(u64::MAX);
    for unit in 0_u32.. {
        if unit % LOOK == 0 && !may_go_on(&outbox).await {
            return;
        }
        if let Err(error) = deposit(&outbox, &plan, &mut dice).await {
            // Conflicts are the writers' own; the rest belongs to the fault.
            if !is_version_conflict(&error) {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, source, number, "a unit of work failed");
            }
        }
        tokio::time::sleep(Duration::from_micros(dice.u64(0..=rest))).await;
    }
}

/// Waits while too much has no effect yet; `false` when it is enough.
async fn may_go_on<DB: WorkDb>(outbox: &Outbox<DB>) -> bool {
    loop {
        match room(outbox.pool()).await {
            Ok(Some(true)) => return true,
            Ok(None) => return false,
            Ok(Some(false)) | Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// One deposit or two, in a transaction or as one statement, committed or not.
async fn deposit<DB: WorkDb>(
    outbox: &Outbox<DB>,
    plan: &Plan,
    dice: &mut fastrand::Rng,
) -> Result<(), Error> {
    let mut uow = outbox.begin(MessageContext::new()).await?;
    if dice.u32(0..3) == 0 {
        uow.connection().await?;
    }
    let first = dice.usize(0..plan.accounts);
    put(&mut uow, first, 1).await?;
    if dice.u32(0..4) == 0 && plan.accounts > 1 {
        let second = (first + dice.usize(1..plan.accounts)) % plan.accounts;
        put(&mut uow, second, dice.u32(1..3)).await?;
    }
    if plan.sabotage == Some(Sabotage::HalfCommits) && dice.u32(0..20) == 0 {
        let id = AccountId::from(account((first + 1) % plan.accounts));
        let mut silent = uow.get::<Account>(&id).await?;
        silent.deposit_silently(1);
        uow.save(&mut silent).await?;
    }
    match dice.u32(0..10) {
        0 => uow.rollback().await,
        1 => {
            drop(uow);
            Ok(())
        }
        _ => uow.commit().await,
    }
}

async fn put<DB: WorkDb>(
    uow: &mut UnitOfWork<'_, DB>,
    number: usize,
    times: u32,
) -> Result<(), Error> {
    let mut account = uow
        .get::<Account>(&AccountId::from(account(number)))
        .await?;
    for _ in 0..times {
        account.deposit(1);
    }
    uow.save(&mut account).await
}
