//! The table has what is emitted, and what the table has is emitted.

use std::collections::BTreeSet;

use outbox_runtime::telemetry::metrics::METRICS;

use super::recording;
use super::{inbox, relay, sampled, work};

/// Runs what the other tests run. That no other name appears is checked with each recording.
macro_rules! every_name_is_emitted {
    ($fixture:expr) => {{
        recording::forget();
        relay::what_is_published($fixture).await;
        relay::a_broker_that_fails_for_a_while($fixture).await;
        relay::a_circuit_that_opens($fixture).await;
        relay::a_message_that_is_refused_for_good($fixture).await;
        relay::scheduled_events($fixture).await;
        inbox::what_is_handled($fixture).await;
        inbox::what_is_handled_in_batches($fixture).await;
        inbox::what_fails($fixture).await;
        inbox::what_nobody_takes($fixture).await;
        work::what_retention_removes($fixture).await;
        sampled::an_app_shows_what_waits_in_its_tables($fixture).await;
        let table: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(recording::names(), table);
    }};
}

#[tokio::test]
async fn every_name_is_emitted_on_sqlite() {
    every_name_is_emitted!(outbox_tests::sqlite().await);
}

#[tokio::test]
async fn every_name_is_emitted_on_postgres() {
    if outbox_tests::postgres().await.is_some() {
        every_name_is_emitted!(outbox_tests::postgres().await.unwrap());
    }
}
