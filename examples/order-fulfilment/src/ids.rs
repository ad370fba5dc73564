//! The identities that the contexts share, since their events carry them.

use outbox_runtime::typed_id;

typed_id! {
    /// Identifies an order; the customer's file chooses it, so placing it twice is noticed.
    pub struct OrderId(String);
}

typed_id! {
    /// Identifies a customer and so a credit account.
    pub struct CustomerId(String);
}

typed_id! {
    /// Identifies an article on stock (stock keeping unit).
    pub struct Sku(String);
}
