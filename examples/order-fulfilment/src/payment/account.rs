use outbox_runtime::prelude::*;

use super::events::{PaymentCaptured, PaymentDeclined, PaymentRefunded};
use crate::{CustomerId, OrderId};

/// A customer's account: what they may spend and what they have spent.
#[aggregate(
    table = "payment_accounts",
    events(PaymentCaptured, PaymentDeclined, PaymentRefunded)
)]
#[derive(Debug)]
pub struct Account {
    #[aggregate(id)]
    customer_id: CustomerId,
    credit_cents: i64,
    spent_cents: i64,
    root: AggregateRoot,
}

impl Account {
    /// An account on which nothing was spent.
    pub fn open(customer_id: CustomerId, credit_cents: i64) -> Self {
        Self {
            customer_id,
            credit_cents,
            spent_cents: 0,
            root: AggregateRoot::new(),
        }
    }

    /// Takes an order's total, all or none.
    pub fn capture(&mut self, order_id: OrderId, amount_cents: i64) {
        let customer_id = self.customer_id.clone();
        if amount_cents > self.left_cents() {
            return self.raise(PaymentDeclined {
                order_id,
                customer_id,
                amount_cents,
            });
        }
        self.spent_cents += amount_cents;
        self.raise(PaymentCaptured {
            order_id,
            customer_id,
            amount_cents,
        });
    }

    /// Gives an order's total back.
    pub fn refund(&mut self, order_id: OrderId, amount_cents: i64) {
        self.spent_cents -= amount_cents;
        self.raise(PaymentRefunded {
            order_id,
            customer_id: self.customer_id.clone(),
            amount_cents,
        });
    }

    /// What the customer can still spend.
    pub fn left_cents(&self) -> i64 {
        self.credit_cents - self.spent_cents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> OrderId {
        text.to_owned().into()
    }

    #[test]
    fn credit_is_never_exceeded() {
        let mut account = Account::open("c".to_owned().into(), 100);
        account.capture(id("o1"), 100);
        account.capture(id("o2"), 1);
        assert_eq!(account.left_cents(), 0);
        assert_eq!(account.root.pending_of::<PaymentCaptured>().count(), 1);
        assert_eq!(account.root.pending_of::<PaymentDeclined>().count(), 1);
    }

    #[test]
    fn a_refund_undoes_a_capture() {
        let mut account = Account::open("c".to_owned().into(), 100);
        account.capture(id("o1"), 60);
        account.refund(id("o1"), 60);
        assert_eq!(account.left_cents(), 100);
    }
}
