//! Three bounded contexts that fulfil orders together, and know each other by their events alone.
//!
//! Start with one context: its `events.rs` says what it tells the world, the aggregate's file how it
//! decides, `handlers.rs` what makes it act. Then the next.
//!
//! ```text
//!              ┌─> inventory: StockReserved   | StockRejected   ─┐
//! OrderPlaced ─┤                                                 ├─> ordering: OrderConfirmed
//!              └─> payment:   PaymentCaptured | PaymentDeclined ─┘             | OrderCancelled
//!                                                                                     │
//!                  inventory gives back what it reserved: StockReleased     <─────────┤
//!                  payment gives back what it captured:   PaymentRefunded   <─────────┘
//! ```
//!
//! No context calls another. Ordering waits for both answers before it decides, so an order that
//! fails is cancelled once, with the knowledge of all that has to be given back.

// The fields of the events say by their names what they are.
#![allow(missing_docs)]

mod ids;
pub mod inventory;
pub mod ordering;
pub mod payment;
mod shop;

pub use ids::{CustomerId, OrderId, Sku};
pub use shop::{Limits, ShopDb};
