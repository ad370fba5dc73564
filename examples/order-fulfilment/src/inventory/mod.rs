//! Inventory: reserves goods for orders, and puts them back when an order is cancelled.

mod events;
mod handlers;
mod stock;

pub use events::{StockRejected, StockReleased, StockReserved};
pub use handlers::{release, reserve};
pub use stock::Stock;
