use outbox_runtime::prelude::*;

use crate::TestDatabase;

typed_id! {
    /// What an account is known by.
    pub struct AccountId(String);
}

/// Money came in.
#[domain_event(version = 1, name = "account.deposited")]
#[derive(Debug, Clone, PartialEq)]
pub struct Deposited {
    /// The account.
    pub account_id: AccountId,
    /// How much, in cents.
    pub cents: i64,
}

/// The account is open; it opens only once.
#[domain_event(version = 1, name = "account.opened", key = "{account_id}:opened")]
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// The account.
    pub account_id: AccountId,
}

/// The account is gone.
#[domain_event(version = 1, name = "account.closed")]
#[derive(Debug, Clone, PartialEq)]
pub struct Closed {
    /// The account.
    pub account_id: AccountId,
}

/// A bell rang: an event of no aggregate.
#[domain_event(version = 1, name = "bell.rang")]
#[derive(Debug, Clone, PartialEq)]
pub struct BellRang {
    /// How often.
    pub times: u32,
}

/// An account with money in it.
#[aggregate(table = "account", events(Opened, Deposited, Closed))]
#[derive(Debug)]
pub struct Account {
    id: AccountId,
    cents: i64,
    root: AggregateRoot,
}

impl Account {
    /// Opens an account.
    pub fn open(id: &str) -> Self {
        let mut account = Self::silent(id);
        account.raise(Opened {
            account_id: account.id.clone(),
        });
        account
    }

    /// An account that tells nobody.
    pub fn silent(id: &str) -> Self {
        Self {
            id: AccountId::from(id.to_owned()),
            cents: 0,
            root: AggregateRoot::new(),
        }
    }

    /// Takes money in.
    pub fn deposit(&mut self, cents: i64) {
        self.cents += cents;
        self.raise(Deposited {
            account_id: self.id.clone(),
            cents,
        });
    }

    /// Takes money in and tells nobody.
    pub fn deposit_silently(&mut self, cents: i64) {
        self.cents += cents;
    }

    /// Says goodbye.
    pub fn close(&mut self) {
        self.raise(Closed {
            account_id: self.id.clone(),
        });
    }

    /// What is in it.
    pub fn cents(&self) -> i64 {
        self.cents
    }
}

/// A test database that stores the bank's aggregates.
pub trait BankDb: TestDatabase + Stores<Account> {}

impl<DB: TestDatabase + Stores<Account>> BankDb for DB {}

/// The bank's table, on either database.
pub const SCHEMA: &str =
    "CREATE TABLE account (id TEXT PRIMARY KEY, cents BIGINT NOT NULL, version BIGINT NOT NULL)";

/// An account's id.
pub fn id(text: &str) -> AccountId {
    AccountId::from(text.to_owned())
}
