use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use outbox_runtime::{MessageId, Outbox};
use outbox_tests::Fixture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::recorder::{Arrival, Recorder};
use crate::writers::{ProofDb, SLOW};

/// Each deposit is one event and one cent, and opening is one event: so they balance.
pub(crate) async fn books_balance<DB: ProofDb>(fixture: &Fixture<DB>) {
    let events = fixture.events().await;
    let sum = |what| format!("SELECT CAST(sum({what}) AS BIGINT) FROM account");
    let versions = fixture.number(&sum("version")).await;
    let cents = fixture.number(&sum("cents + 1")).await;
    assert_eq!(events, versions, "committed changes and events differ");
    assert_eq!(cents, versions, "state and versions differ");
}

/// Waits until as many messages arrived as there are in the log; far longer than it ever takes.
pub(crate) async fn all_arrive<DB: ProofDb>(fixture: &Fixture<DB>, recorder: &Recorder) {
    let events = usize::try_from(fixture.events().await).unwrap();
    let arriving = async {
        while recorder.distinct() < events {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(120), arriving).await;
    assert!(
        in_time.is_ok(),
        "{} of {events} arrived",
        recorder.distinct()
    );
}

/// Looks again and again whether a position has passed a message that neither arrived nor waits
/// among the parked ones. Says how often it looked.
pub(crate) async fn positions_are_behind_arrivals<DB: ProofDb>(
    outbox: Outbox<DB>,
    recorder: Recorder,
    end: CancellationToken,
) -> usize {
    let sql = format!(
        "SELECT {} FROM outbox_message AS message \
         JOIN outbox_shard AS shard ON shard.shard = message.shard \
         WHERE message.id <= shard.position AND message.id > shard.position - 300 \
         AND NOT EXISTS (SELECT 1 FROM outbox_parked AS parked WHERE parked.id = message.id)",
        DB::MESSAGE_ID
    );
    let mut looks = 0;
    while !end.is_cancelled() {
        for passed in DB::texts(outbox.pool(), &sql).await {
            let arrived = recorder.has(message_id(&passed));
            assert!(arrived, "a position passed {passed}, which never arrived");
        }
        looks += 1;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    looks
}

/// Compares the log and the arrivals, message by message. Says how many messages overtook the
/// transaction that stayed open: they have a higher id and arrived first.
pub(crate) async fn what_arrived_is_what_was_committed<DB: ProofDb>(
    fixture: &Fixture<DB>,
    recorder: &Recorder,
) -> usize {
    let log = read_log(fixture).await;
    let arrivals = recorder.arrivals();
    assert_eq!(arrivals.len(), recorder.distinct());
    assert_eq!(arrivals.len(), log.len());
    let places: HashMap<&Arrival, usize> = log.iter().zip(0..).collect();
    let mut overtook_slow = 0;
    for (number, arrival) in arrivals.iter().enumerate() {
        let place = places.get(arrival);
        let place = place.unwrap_or_else(|| panic!("{arrival:?} was never committed"));
        if arrival.aggregate_id == SLOW {
            let before = &arrivals[..number];
            let overtook = before.iter().filter(|other| places[other] > *place);
            overtook_slow = overtook_slow.max(overtook.count());
        }
    }
    let versions = versions(&log);
    let sequences = recorder.sequences();
    assert_eq!(sequences.len(), versions.len());
    for (aggregate, sequences) in sequences {
        let complete: Vec<i64> = (1..=versions[aggregate.as_str()]).collect();
        assert_eq!(sequences, complete, "order of {aggregate}");
    }
    overtook_slow
}

/// The events of the log in the order of their ids.
async fn read_log<DB: ProofDb>(fixture: &Fixture<DB>) -> Vec<Arrival> {
    let sql = format!(
        "SELECT aggregate_id || ' ' || sequence || ' ' || {} FROM outbox_message ORDER BY id",
        DB::MESSAGE_ID
    );
    let lines = fixture.texts(&sql).await;
    let row = |line: &String| {
        let words: Vec<_> = line.split(' ').collect();
        Arrival {
            aggregate_id: words[0].to_owned(),
            sequence: words[1].parse().unwrap(),
            message_id: message_id(words[2]),
        }
    };
    lines.iter().map(row).collect()
}

/// The last sequence of each aggregate, whose events follow each other without a hole.
fn versions(log: &[Arrival]) -> BTreeMap<&str, i64> {
    let mut versions: BTreeMap<&str, i64> = BTreeMap::new();
    for row in log {
        let version = versions.entry(&row.aggregate_id).or_default();
        *version += 1;
        assert_eq!(row.sequence, *version, "{} in the log", row.aggregate_id);
    }
    versions
}

fn message_id(text: &str) -> MessageId {
    MessageId::from_uuid(text.parse::<Uuid>().unwrap())
}
