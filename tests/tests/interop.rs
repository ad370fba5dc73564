//! Brokers between us and clients that are not ours: Python's package `cloudevents`, and a plain
//! client of each broker. Their programs are in the folder `interop` of this package.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "interop/handling.rs"]
mod handling;
#[path = "interop/malformed.rs"]
mod malformed;
#[path = "interop/python.rs"]
mod python;
#[path = "interop/reading.rs"]
mod reading;
#[path = "interop/service.rs"]
mod service;

/// Makes a test of each for one broker.
macro_rules! interop {
    ($name:ident, $kit:ident, { $($module:ident::$test:ident),+ $(,)? }) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$module::$test::<outbox_tests::brokers::$kit>().await;
            })+
        }
    };
    ($name:ident, $kit:ident) => {
        interop!($name, $kit, {
            reading::others_read_all_of_what_is_published_in_both_modes,
            handling::what_others_publish_has_its_effect_once_and_in_order,
            handling::what_others_know_of_us_is_understood,
            malformed::what_others_publish_and_is_no_event_is_kept_with_its_bytes,
            malformed::what_others_publish_and_no_handler_can_read_is_kept,
        });
    };
}

#[cfg(feature = "kafka")]
interop!(kafka, Kafka);
#[cfg(feature = "nats")]
interop!(nats, Nats);
#[cfg(feature = "rabbitmq")]
interop!(rabbitmq, RabbitMq);
#[cfg(feature = "redis")]
interop!(redis, Redis);
