//! What a stream says to a publisher.

use async_nats::jetstream::{self, Context, stream};
use outbox_runtime::broker::{NatsBroker, Publisher, Subscriber, Subscription};
use outbox_tests::brokers::Nats;
use outbox_tests::brokers::suite::{Ground, Member, event};

async fn jetstream(ground: &Ground<Nats>) -> Context {
    jetstream::new(async_nats::connect(&ground.url).await.unwrap())
}

fn stream_name(ground: &Ground<Nats>) -> String {
    format!("{}_events", ground.topics.namespace())
}

/// A stream of this test's making, which our broker finds.
async fn made(ground: &Ground<Nats>, change: impl FnOnce(&mut stream::Config)) {
    let mut config = stream::Config {
        name: stream_name(ground),
        subjects: vec![format!("{}.events.>", ground.topics.namespace())],
        ..stream::Config::default()
    };
    change(&mut config);
    jetstream(ground).await.create_stream(config).await.unwrap();
}

#[tokio::test]
async fn a_repetition_is_dropped_by_the_stream() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    let broker = ground.broker();
    let messages = [event("Happened", "1", 1), event("Happened", "1", 2)];
    for _ in 0..3 {
        for result in broker.publish(&messages).await {
            result.unwrap();
        }
    }
    let stream = jetstream(&ground)
        .await
        .get_stream(stream_name(&ground))
        .await;
    assert_eq!(stream.unwrap().cached_info().state.messages, 2);
}

#[tokio::test]
async fn a_full_stream_is_waited_for_and_order_holds() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    made(&ground, |config| {
        config.max_messages = 2;
        config.discard = stream::DiscardPolicy::New;
    })
    .await;
    let broker = ground.broker();
    let messages: Vec<_> = (1..=4).map(|n| event("Happened", "1", n)).collect();
    let results = broker.publish(&messages).await;
    assert!(results[0].is_ok() && results[1].is_ok(), "{results:?}");
    let full = results[2].as_ref().unwrap_err();
    assert!(full.is_transient() && !full.is_withheld(), "{full}");
    assert!(results[3].as_ref().unwrap_err().is_withheld());
    let stream = jetstream(&ground)
        .await
        .get_stream(stream_name(&ground))
        .await;
    stream.unwrap().purge().await.unwrap();
    for result in broker.publish(&messages[2..]).await {
        result.unwrap();
    }
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    assert_eq!(member.take_distinct(2).await, messages[2..]);
}

#[tokio::test]
async fn what_a_stream_is_too_small_for_is_refused_for_good() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    made(&ground, |config| config.max_message_size = 2_000).await;
    let mut large = event("Happened", "1", 1);
    large.payload = format!("\"{}\"", "x".repeat(3_000));
    let results = ground
        .broker()
        .publish(&[large, event("Happened", "2", 1)])
        .await;
    let error = results[0].as_ref().unwrap_err();
    assert!(!error.is_transient(), "{error}");
    assert!(results[1].is_ok(), "{results:?}");
}

#[tokio::test]
async fn a_stream_of_that_name_with_other_subjects_is_told_of() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    let elsewhere = format!("{}.other.>", ground.topics.namespace());
    made(&ground, |config| config.subjects = vec![elsewhere]).await;
    let broker = ground.broker();
    let results = broker.publish(&[event("Happened", "1", 1)]).await;
    let error = results[0].as_ref().unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("another namespace"), "{error}");
    let subscription = Subscription::new("group", ["Happened"]).of_partition(0);
    let Err(error) = broker.subscribe(subscription).await else {
        panic!("it reads what is not there");
    };
    assert!(error.to_string().contains("another namespace"), "{error}");
}

#[tokio::test]
async fn a_stream_that_each_message_leaves_at_once_is_not_read() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    made(&ground, |config| {
        config.retention = stream::RetentionPolicy::WorkQueue;
    })
    .await;
    let subscription = Subscription::new("group", ["Happened"]).of_partition(0);
    let Err(error) = ground.broker().subscribe(subscription).await else {
        panic!("it reads a work queue");
    };
    assert!(error.to_string().contains("workqueue"), "{error}");
}

#[tokio::test]
async fn a_stream_is_made_as_it_was_asked_for() {
    let Some(ground) = Ground::<Nats>::shared() else {
        return;
    };
    let keep = std::time::Duration::from_secs(60);
    let broker = NatsBroker::new(&ground.url, ground.options())
        .unwrap()
        .keep(keep);
    broker.publish(&[event("order.placed", "a.b", 1)]).await[0]
        .as_ref()
        .unwrap();
    let stream = jetstream(&ground)
        .await
        .get_stream(stream_name(&ground))
        .await
        .unwrap();
    let config = &stream.cached_info().config;
    assert_eq!(config.max_age, keep);
    assert_eq!(config.duplicate_window, keep);
    let message = stream.get_raw_message(1).await.unwrap();
    let subject = message.subject.to_string();
    let partition = subject.split('.').nth(2).unwrap();
    let namespace = ground.topics.namespace();
    assert_eq!(
        subject,
        format!("{namespace}.events.{partition}.order.placed.a=2Eb")
    );
    assert!(partition.parse::<u16>().unwrap() < 4);
}
