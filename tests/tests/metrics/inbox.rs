use outbox_runtime::inbox::OnUnhandled;
use outbox_runtime::prelude::*;
use outbox_tests::{Answer, Fixture, Postman, TestDatabase, message};

use super::consumer_support::*;
use super::in_one_thread;
use super::recording::Recording;

in_one_thread!(
    what_is_handled,
    what_is_handled_in_batches,
    what_fails,
    what_nobody_takes
);

async fn acknowledged(postman: &Postman, message: &outbox_runtime::Message) {
    let answer = postman.deliver(message).await.unwrap();
    assert_eq!(answer, Answer::Acknowledged);
}

pub async fn what_is_handled<DB: TestDatabase + Stores<Account>>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT, BONUS]));
    for sequence in 1..=20 {
        let message = message(&paid("a", 1), "order-1", sequence);
        acknowledged(&postman, &message).await;
        if sequence <= 5 {
            acknowledged(&postman, &message).await;
        }
    }
    running.wait_for_handled(40).await;
    running.stop().await.unwrap();
    let figures = recording.figures();
    let duration = |consumer, outcome| {
        let labels = format!("consumer={consumer},event_type=money.paid,outcome={outcome}");
        figures
            .values("inbox_handler_duration_seconds", &labels)
            .len()
    };
    for consumer in [CREDIT, BONUS] {
        assert_eq!(duration(consumer, "committed"), 20);
        assert_eq!(duration(consumer, "duplicate"), 5);
        let labels = format!("consumer={consumer}");
        assert_eq!(figures.count("inbox_duplicates_total", &labels), 5);
    }
    assert_eq!(figures.counts_of("inbox_handler_duration_seconds").len(), 4);
    // The commits of the handlers' units of work, and the events that they raised.
    let commits = figures.counts_of("unit_of_work_commit_duration_seconds");
    assert_eq!(commits, [("outcome=committed", 40)].into());
    assert_eq!(figures.count("unit_of_work_events_total", ""), 40);
    assert!(
        figures
            .counts_of("inbox_published_to_handled_seconds")
            .is_empty(),
        "this broker does not tell when a message was published"
    );
    for name in ["retries", "parked", "dead", "unhandled", "unreadable"] {
        assert_eq!(figures.sum(&format!("inbox_{name}_total")), 0, "{name}");
    }
}

pub async fn what_is_handled_in_batches<DB: TestDatabase + Stores<Account>>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    let ids: Vec<_> = (0..20).map(|n| format!("account-{n}")).collect();
    open_accounts(&fixture, &ids.iter().map(|id| &**id).collect::<Vec<_>>()).await;
    let (postman, script) = (Postman::new(), Script::default());
    // The first ten succeed, and one of the others fails once: in the batch.
    let mut acts = vec![Act::Succeed; 15];
    acts.push(Act::Fail(FailureKind::Transient));
    script.set(CREDIT, acts);
    let answers: Vec<_> = ids
        .iter()
        .map(|id| postman.deliver(&message(&paid(id, 1), id, 1)))
        .collect();
    let in_batches = options().concurrency(1).batch(10);
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT]).with_options(in_batches);
    let running = Running::start(consumer);
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    running.wait_for_handled(20).await;
    running.stop().await.unwrap();
    let figures = recording.figures();
    let sizes = |outcome| figures.values("inbox_batch_messages", &format!("outcome={outcome}"));
    assert_eq!(sizes("rolled_back").len(), 1);
    assert!(!sizes("committed").is_empty());
    assert!(
        sizes("committed")
            .iter()
            .all(|size| (2.0..=10.0).contains(size))
    );
    // Each message is handled once, and its event committed once, whatever was tried before.
    let labels = format!("consumer={CREDIT},event_type=money.paid,outcome=committed");
    assert_eq!(
        figures
            .values("inbox_handler_duration_seconds", &labels)
            .len(),
        20
    );
    assert_eq!(figures.counts_of("inbox_handler_duration_seconds").len(), 1);
    assert_eq!(figures.count("unit_of_work_events_total", ""), 20);
    assert_eq!(figures.sum("inbox_retries_total"), 0);
}

pub async fn what_fails<DB: TestDatabase + Stores<Account>>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    open_accounts(&fixture, &["a", "b"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let transient = Act::Fail(FailureKind::Transient);
    script.set(CREDIT, [transient.clone(), Act::Panic, transient]);
    let running = Running::start(consumer(&fixture, &postman, &script, &[CREDIT]));
    acknowledged(&postman, &message(&paid("a", 1), "order-1", 1)).await;
    running.wait_for_handled(1).await;

    script.set(CREDIT, [Act::Fail(FailureKind::Permanent)]);
    acknowledged(&postman, &message(&paid("b", 1), "order-2", 1)).await;
    acknowledged(&postman, &message(&paid("b", 1), "order-2", 2)).await;
    eventually(|| running.consumer.counts().parked == 3).await;
    running.stop().await.unwrap();
    let figures = recording.figures();
    let duration = |outcome: &str| {
        let labels = format!("consumer=ledger.credit,event_type=money.paid,outcome={outcome}");
        figures
            .values("inbox_handler_duration_seconds", &labels)
            .len()
    };
    assert_eq!(duration("transient"), 3);
    assert_eq!(duration("committed"), 1);
    assert_eq!(duration("permanent"), 1);
    assert_eq!(duration("parked"), 1, "behind the dead one");
    let counter =
        |name: &str| figures.count(&format!("inbox_{name}_total"), "consumer=ledger.credit");
    assert_eq!(counter("retries"), 3);
    assert_eq!(counter("parked"), 3);
    assert_eq!(counter("dead"), 1);
    assert_eq!(counter("duplicates"), 0);
}

pub async fn what_nobody_takes<DB: TestDatabase + Stores<Account>>(fixture: Fixture<DB>) {
    let recording = Recording::start();
    open_accounts(&fixture, &["a"]).await;
    let (postman, script) = (Postman::new(), Script::default());
    let parking = options().on_unhandled(OnUnhandled::Park);
    let consumer = consumer(&fixture, &postman, &script, &[CREDIT]).with_options(parking);
    let running = Running::start(consumer);
    for n in 0..50 {
        let mut strange = message(&paid("a", 1), "order-1", n);
        strange.metadata.event_type = format!("made-up-{n}");
        acknowledged(&postman, &strange).await;
    }
    let mut newer = message(&paid("a", 1), "order-2", 1);
    newer.metadata.schema_version = 9;
    acknowledged(&postman, &newer).await;
    running.stop().await.unwrap();
    let figures = recording.figures();
    assert_eq!(figures.count("inbox_unhandled_total", ""), 50);
    assert_eq!(
        figures.count("inbox_unreadable_total", "consumer=ledger.credit"),
        1
    );
    for name in ["inbox_parked_total", "inbox_dead_total"] {
        assert_eq!(figures.count(name, "consumer=(none)"), 50, "{name}");
        assert_eq!(figures.count(name, "consumer=ledger.credit"), 1, "{name}");
        assert_eq!(figures.sum(name), 51, "{name}");
    }
    let shown = format!("{figures:?}");
    assert!(
        !shown.contains("made-up"),
        "types from outside are no labels: {shown}"
    );
    assert!(!shown.contains("order-"), "ids are no labels: {shown}");
}
