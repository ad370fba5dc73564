//! Tests that count: what is promised holds under load, crashes and outages, to the last event.
//! `tests/README.md` says which test stands for which failure case.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "proof/backlog.rs"]
mod backlog;
#[path = "proof/books.rs"]
mod books;
#[path = "proof/broker_outage.rs"]
mod broker_outage;
#[path = "proof/cancelled.rs"]
mod cancelled;
#[path = "proof/database_outage.rs"]
mod database_outage;
#[path = "proof/dice.rs"]
mod dice;
#[path = "proof/exact.rs"]
mod exact;
#[path = "proof/failing_serializers.rs"]
mod failing_serializers;
#[path = "proof/isolation.rs"]
mod isolation;
#[path = "proof/kills.rs"]
mod kills;
#[path = "proof/notices.rs"]
mod notices;
#[path = "proof/once.rs"]
mod once;
#[path = "proof/recorder.rs"]
mod recorder;
#[path = "proof/relays.rs"]
mod relays;
#[path = "proof/shop.rs"]
mod shop;
#[path = "proof/small_pool.rs"]
mod small_pool;
#[path = "proof/table_of_cases.rs"]
mod table_of_cases;
#[path = "proof/writers.rs"]
mod writers;
