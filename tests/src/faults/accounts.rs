use outbox_runtime::prelude::*;

use super::database::FaultDb;
use crate::bank::Account;

/// How many aggregates there are for the writers.
const ACCOUNTS: usize = 40;

/// The name of an account of the writers.
pub fn account(number: usize) -> String {
    format!("account-{number:03}")
}

/// Opens them all.
pub(super) async fn open_accounts<DB: FaultDb>(outbox: &Outbox<DB>) {
    let mut uow = outbox
        .begin(MessageContext::new())
        .await
        .expect("a context");
    for number in 0..ACCOUNTS {
        let mut account = Account::silent(&account(number));
        uow.add(&mut account).await.expect("a new account");
    }
    uow.commit().await.expect("the database is there");
}
