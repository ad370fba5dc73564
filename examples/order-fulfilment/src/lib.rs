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
//! Around them are a way in and a way out: [`intake`] reads orders, [`placing`] places them, and
//! [`books`] compares at the end. The program of this package runs all three contexts in one process;
//! `order-fulfilment-distributed` runs the same code as a service each.
//!
//! No context calls another. Ordering waits for both answers before it decides, so an order that
//! fails is cancelled once, with the knowledge of all that has to be given back.

// The fields of the events say by their names what they are.
#![allow(missing_docs)]

pub mod books;
mod context;
mod ids;
pub mod intake;
pub mod inventory;
pub mod ordering;
pub mod payment;
pub mod placing;
mod shop;

pub use context::BoundedContext;
pub use ids::{CustomerId, OrderId, Sku};
pub use shop::{Limits, ShopDb};
