//! Ordering: takes orders, hears what inventory and payment say, and confirms or cancels.

mod events;
mod handlers;
mod order;

pub use events::{OrderCancelled, OrderConfirmed, OrderPlaced};
pub use handlers::{
    HandlingError, on_payment_captured, on_payment_declined, on_stock_rejected, on_stock_reserved,
};
pub use order::{Answer, Order, OrderError, OrderStatus};
