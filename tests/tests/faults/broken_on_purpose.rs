//! Each count of the matrix is more than zero when its promise is broken.

use std::time::Duration;

use outbox_tests::faults::{Fault, FaultDb, Sabotage, Settings, Verdict};

use crate::on_both;
use crate::run::settings;

on_both!(
    what_is_not_sent_counts_as_lost,
    what_is_applied_twice_counts_as_duplicated,
    what_is_swapped_counts_as_out_of_order,
    what_is_half_committed_counts_as_torn,
);

/// Nothing without a database to break it on.
async fn sabotaged<DB: FaultDb>(fault: Fault, sabotage: Sabotage) -> Option<Verdict> {
    let settings = Settings {
        sabotage: Some(sabotage),
        // What is lost never comes.
        standstill: Duration::from_secs(8),
        ..settings(300)
    };
    let verdict = fault.run::<DB>(settings, &|_| {}).await.ok()?;
    assert!(!verdict.is_clean(), "{verdict:#?}");
    Some(verdict)
}

async fn what_is_not_sent_counts_as_lost<DB: FaultDb>() {
    if let Some(verdict) = sabotaged::<DB>(Fault::BrokerRestarted, Sabotage::DropsMessages).await {
        assert!(verdict.lost > 0, "{verdict:#?}");
        assert_eq!((verdict.duplicated, verdict.torn), (0, 0), "{verdict:#?}");
    }
}

async fn what_is_applied_twice_counts_as_duplicated<DB: FaultDb>() {
    if let Some(verdict) = sabotaged::<DB>(Fault::AnswersLost, Sabotage::ForgetsInboxRows).await {
        assert!(verdict.duplicated > 0, "{verdict:#?}");
        assert_eq!(verdict.lost, 0, "{verdict:#?}");
    }
}

async fn what_is_swapped_counts_as_out_of_order<DB: FaultDb>() {
    if let Some(verdict) = sabotaged::<DB>(Fault::BrokerRestarted, Sabotage::SwapsMessages).await {
        assert!(verdict.out_of_order > 0, "{verdict:#?}");
        assert_eq!((verdict.lost, verdict.duplicated), (0, 0), "{verdict:#?}");
    }
}

async fn what_is_half_committed_counts_as_torn<DB: FaultDb>() {
    if let Some(verdict) = sabotaged::<DB>(Fault::BrokerRestarted, Sabotage::HalfCommits).await {
        assert!(verdict.torn > 0, "{verdict:#?}");
        assert_eq!((verdict.lost, verdict.duplicated), (0, 0), "{verdict:#?}");
    }
}
