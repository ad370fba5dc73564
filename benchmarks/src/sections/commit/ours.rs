use anyhow::Result;
use outbox_runtime::prelude::*;
use sqlx::Postgres;

use super::NOTE;
use crate::domain::{Account, AccountId};
use crate::load::Worker;

/// Changes an account that is in memory, and commits it with its events.
pub(crate) struct SaveCommit<DB: Backend> {
    outbox: Outbox<DB>,
    accounts: Vec<Account>,
    events: usize,
    turn: usize,
}

impl<DB: Backend> SaveCommit<DB> {
    pub(crate) fn new(outbox: Outbox<DB>, accounts: Vec<Account>, events: usize) -> Self {
        Self {
            outbox,
            accounts,
            events,
            turn: 0,
        }
    }
}

impl<DB: Stores<Account>> Worker for SaveCommit<DB> {
    async fn once(&mut self) -> Result<()> {
        self.turn = (self.turn + 1) % self.accounts.len();
        let Some(account) = self.accounts.get_mut(self.turn) else {
            return Ok(());
        };
        let mut uow = self.outbox.begin(MessageContext::new()).await?;
        for _ in 0..self.events {
            account.deposit(1, NOTE);
        }
        uow.save(account).await?;
        uow.commit().await?;
        Ok(())
    }
}

/// Loads an account, changes it, and commits it with its event.
pub(super) struct LoadChangeCommit {
    outbox: Outbox<Postgres>,
    ids: Vec<AccountId>,
    turn: usize,
}

impl LoadChangeCommit {
    pub(super) fn new(outbox: Outbox<Postgres>, accounts: Vec<Account>) -> Self {
        Self {
            outbox,
            ids: accounts.iter().map(|account| account.id.clone()).collect(),
            turn: 0,
        }
    }
}

impl Worker for LoadChangeCommit {
    async fn once(&mut self) -> Result<()> {
        self.turn = (self.turn + 1) % self.ids.len();
        let Some(id) = self.ids.get(self.turn) else {
            return Ok(());
        };
        let mut uow = self.outbox.begin(MessageContext::new()).await?;
        let mut account = uow.get::<Account>(id).await?;
        account.deposit(1, NOTE);
        uow.save(&mut account).await?;
        uow.commit().await?;
        Ok(())
    }
}
