use outbox_runtime::prelude::*;

use super::events::{OrderCancelled, OrderConfirmed, OrderPlaced};
use crate::{CustomerId, OrderId, Sku};

/// An order for a number of pieces of one article.
#[aggregate(
    table = "ordering_orders",
    events(OrderPlaced, OrderConfirmed, OrderCancelled)
)]
#[derive(Debug)]
pub struct Order {
    #[aggregate(id)]
    id: OrderId,
    customer_id: CustomerId,
    sku: Sku,
    quantity: i64,
    total_cents: i64,
    status: OrderStatus,
    stock: Answer,
    payment: Answer,
    root: AggregateRoot,
}

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum OrderStatus {
    /// Waits for the answers of inventory and payment.
    Placed,
    /// Reserved and paid; final.
    Confirmed,
    /// Goods or money were missing; final.
    Cancelled,
}

/// What another context said about an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Answer {
    /// Nothing yet.
    Awaited,
    /// It did its part.
    Yes,
    /// It could not.
    No,
}

/// An order refuses what is asked of it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Nothing, or less, was ordered.
    #[error("an order needs at least one piece at a price of at least one cent")]
    Empty,
    /// The total is beyond what can be counted.
    #[error("quantity times unit price is too large")]
    TooLarge,
    /// The inbox lets every answer through once, so a second one is another message: a fault.
    #[error("order {0} has its answer already")]
    AnsweredAlready(OrderId),
}

impl Order {
    /// Takes an order.
    pub fn place(
        id: OrderId,
        customer_id: CustomerId,
        sku: Sku,
        quantity: i64,
        unit_price_cents: i64,
    ) -> Result<Self, OrderError> {
        if quantity < 1 || unit_price_cents < 1 {
            return Err(OrderError::Empty);
        }
        let total_cents = quantity
            .checked_mul(unit_price_cents)
            .ok_or(OrderError::TooLarge)?;
        let mut order = Self {
            id: id.clone(),
            customer_id: customer_id.clone(),
            sku: sku.clone(),
            quantity,
            total_cents,
            status: OrderStatus::Placed,
            stock: Answer::Awaited,
            payment: Answer::Awaited,
            root: AggregateRoot::new(),
        };
        order.raise(OrderPlaced {
            order_id: id,
            customer_id,
            sku,
            quantity,
            total_cents,
        });
        Ok(order)
    }

    /// Inventory has answered.
    pub fn stock_answered(&mut self, answer: Answer) -> Result<(), OrderError> {
        if self.stock != Answer::Awaited {
            return Err(OrderError::AnsweredAlready(self.id.clone()));
        }
        self.stock = answer;
        self.decide();
        Ok(())
    }

    /// Payment has answered.
    pub fn payment_answered(&mut self, answer: Answer) -> Result<(), OrderError> {
        if self.payment != Answer::Awaited {
            return Err(OrderError::AnsweredAlready(self.id.clone()));
        }
        self.payment = answer;
        self.decide();
        Ok(())
    }

    /// Whether this is the same order as one that somebody wants to place again.
    pub fn is_same_as(&self, other: &Order) -> bool {
        self.id == other.id
            && self.customer_id == other.customer_id
            && self.sku == other.sku
            && self.quantity == other.quantity
            && self.total_cents == other.total_cents
    }

    /// Where the order stands.
    pub fn status(&self) -> OrderStatus {
        self.status
    }

    // Both answers arrive at any time and in any order, also at the same time: then one of the two
    // commits meets a version conflict, and its handler runs again on what the other one wrote.
    // So exactly one of them sees both answers and decides.
    fn decide(&mut self) {
        match (self.stock, self.payment) {
            (Answer::Awaited, _) | (_, Answer::Awaited) => {}
            (Answer::Yes, Answer::Yes) => {
                self.status = OrderStatus::Confirmed;
                self.raise(OrderConfirmed {
                    order_id: self.id.clone(),
                    total_cents: self.total_cents,
                });
            }
            (stock, payment) => {
                self.status = OrderStatus::Cancelled;
                self.raise(OrderCancelled {
                    order_id: self.id.clone(),
                    customer_id: self.customer_id.clone(),
                    sku: self.sku.clone(),
                    quantity: self.quantity,
                    total_cents: self.total_cents,
                    stock_reserved: stock == Answer::Yes,
                    payment_captured: payment == Answer::Yes,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn order() -> Order {
        let text = |text: &str| text.to_owned();
        Order::place(
            text("o1").into(),
            text("c1").into(),
            text("s1").into(),
            3,
            250,
        )
        .unwrap()
    }

    #[test]
    fn a_placed_order_says_what_it_costs() {
        let order = order();
        let placed: Vec<_> = order.root.pending_of::<OrderPlaced>().collect();
        assert_eq!(placed.len(), 1);
        assert_eq!(placed.first().unwrap().total_cents, 750);
        assert_eq!(order.status(), OrderStatus::Placed);
    }

    #[test]
    fn two_good_answers_confirm_in_either_order() {
        let mut order = order();
        order.payment_answered(Answer::Yes).unwrap();
        assert_eq!(order.status(), OrderStatus::Placed);
        order.stock_answered(Answer::Yes).unwrap();
        assert_eq!(order.status(), OrderStatus::Confirmed);
        assert_eq!(order.root.pending_of::<OrderConfirmed>().count(), 1);
    }

    #[test]
    fn a_cancelled_order_names_what_must_be_given_back() {
        let mut order = order();
        order.stock_answered(Answer::Yes).unwrap();
        order.payment_answered(Answer::No).unwrap();
        let cancelled = order.root.pending_of::<OrderCancelled>().next().unwrap();
        assert!(cancelled.stock_reserved && !cancelled.payment_captured);
        assert_eq!(order.status(), OrderStatus::Cancelled);
    }

    #[test]
    fn a_second_answer_is_a_fault() {
        let mut order = order();
        order.stock_answered(Answer::No).unwrap();
        assert!(matches!(
            order.stock_answered(Answer::Yes),
            Err(OrderError::AnsweredAlready(_))
        ));
    }

    #[test]
    fn an_order_for_nothing_is_refused() {
        let id = || "x".to_owned();
        let place =
            |quantity, price| Order::place(id().into(), id().into(), id().into(), quantity, price);
        assert!(matches!(place(0, 1), Err(OrderError::Empty)));
        assert!(matches!(place(1, 0), Err(OrderError::Empty)));
        assert!(matches!(place(i64::MAX, 2), Err(OrderError::TooLarge)));
    }
}
