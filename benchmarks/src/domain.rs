use outbox_runtime::prelude::*;

typed_id! {
    /// What an account is known by.
    pub(crate) struct AccountId(i64);
}

/// Money came in.
#[domain_event(version = 1, name = "bench.deposited")]
pub(crate) struct Deposited {
    pub(crate) account_id: AccountId,
    pub(crate) amount_cents: i64,
    pub(crate) note: String,
}

/// An account: what a commit changes.
#[aggregate(table = "accounts", events(Deposited))]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    pub(crate) balance_cents: i64,
    pub(crate) owner: String,
    pub(crate) root: AggregateRoot,
}

impl Account {
    pub(crate) fn deposit(&mut self, amount_cents: i64, note: &str) {
        self.balance_cents += amount_cents;
        let account_id = self.id.clone();
        self.raise(Deposited {
            account_id,
            amount_cents,
            note: note.to_owned(),
        });
    }
}

/// The table, for whoever writes it by hand too.
pub(crate) const ACCOUNTS: &str = "CREATE TABLE accounts (
    id            bigint PRIMARY KEY,
    balance_cents bigint NOT NULL,
    owner         text   NOT NULL,
    version       bigint NOT NULL
)";
