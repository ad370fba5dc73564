//! Payment: captures money from a customer's credit, and refunds it when an order is cancelled.

mod account;
mod events;
mod handlers;

pub use account::Account;
pub use events::{PaymentCaptured, PaymentDeclined, PaymentRefunded};
pub use handlers::{capture, refund};
