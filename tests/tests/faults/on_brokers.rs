//! Some cells of each real broker, and what they say when a promise is broken on purpose.
//! `cargo xtask faults` has all cells.

use std::time::Duration;

use outbox_runtime::fault::Point;
use outbox_servers::REQUIRE_ALL;
use outbox_tests::faults::real::{BrokerFault, BrokerServer};
use outbox_tests::faults::{Sabotage, Settings, Verdict};

use crate::run::{judge, settings};

/// Makes tests of functions that take a broker's name, one for each broker.
macro_rules! on_each_broker {
    ($($name:ident),+ $(,)?) => {
        on_each_broker!(@of nats "nats" $($name)+);
        on_each_broker!(@of kafka "kafka" $($name)+);
        on_each_broker!(@of rabbitmq "rabbitmq" $($name)+);
        on_each_broker!(@of redis "redis" $($name)+);
    };
    (@of $broker:ident $feature:literal $($name:ident)+) => {
        #[cfg(feature = $feature)]
        mod $broker {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($feature).await;
            })+
        }
    };
}

on_each_broker!(
    a_killed_broker_loses_and_repeats_nothing,
    a_killed_handler_leaves_no_half,
    what_a_broker_refuses_stays_alone,
    what_is_confirmed_on_hope_counts_as_lost,
    what_is_acknowledged_before_the_commit_counts_as_lost,
);

async fn a_killed_broker_loses_and_repeats_nothing(broker: &str) {
    tried(broker, BrokerFault::BrokerKilled, 200).await;
}

async fn a_killed_handler_leaves_no_half(broker: &str) {
    tried(broker, BrokerFault::KilledAt(Point::BeforeHandle), 100).await;
}

async fn what_a_broker_refuses_stays_alone(broker: &str) {
    tried(broker, BrokerFault::BrokerRefusesSome, 200).await;
}

async fn what_is_confirmed_on_hope_counts_as_lost(broker: &str) {
    let verdict = sabotaged(
        broker,
        BrokerFault::BrokerKilled,
        Sabotage::ConfirmsOnHope,
        200,
    )
    .await;
    if let Some(verdict) = verdict {
        assert!(verdict.lost > 0, "{verdict:#?}");
    }
}

async fn what_is_acknowledged_before_the_commit_counts_as_lost(broker: &str) {
    // Kafka is told of what is done a tenth of a second later, and so after more kills.
    let (fault, messages) = match broker {
        "kafka" => (BrokerFault::KilledAtRandom, 600),
        _ => (BrokerFault::KilledAt(Point::BeforeHandle), 200),
    };
    let verdict = sabotaged(broker, fault, Sabotage::AcksBeforeCommit, messages).await;
    if let Some(verdict) = verdict {
        assert!(verdict.lost > 0, "{verdict:#?}");
        assert_eq!((verdict.duplicated, verdict.torn), (0, 0), "{verdict:#?}");
    }
}

/// Every promise has to be kept.
async fn tried(broker: &str, fault: BrokerFault, messages: u32) {
    let name = format!("{broker}: {}", fault.name());
    let ended = match BrokerServer::start(broker) {
        Ok(mut server) => fault.run(&mut server, settings(messages), &|_| {}).await,
        Err(why) => Err(why),
    };
    judge(&name, ended);
}

/// A promise is broken; nothing without a broker or a database to break it on.
async fn sabotaged(
    broker: &str,
    fault: BrokerFault,
    sabotage: Sabotage,
    messages: u32,
) -> Option<Verdict> {
    let settings = Settings {
        sabotage: Some(sabotage),
        // What is lost never comes.
        standstill: Duration::from_secs(8),
        ..settings(messages)
    };
    let ended = match BrokerServer::start(broker) {
        Ok(mut server) => fault.run(&mut server, settings, &|_| {}).await,
        Err(why) => Err(why),
    };
    match ended {
        Ok(verdict) => {
            assert!(!verdict.is_clean(), "{verdict:#?}");
            Some(verdict)
        }
        Err(why) => {
            assert!(std::env::var_os(REQUIRE_ALL).is_none(), "{why}");
            eprintln!("skipped: {broker}: {why}");
            None
        }
    }
}
