//! What operators do: groups removed and moved, users with few rights, plain entries.

use std::time::Duration;

use outbox_runtime::broker::{RedisBroker, Subscriber, Subscription};
use outbox_tests::brokers::Redis;
use outbox_tests::brokers::suite::{Ground, event};

use crate::support::{
    ask, broker, end, next, one_stream, published, sequence, stream, subscribed, told,
};

/// It is made anew and reads all that the stream still has.
#[tokio::test]
async fn a_group_that_was_removed_starts_again_at_the_oldest_entry() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    published(&broker, &[event("Happened", "1", 1)]).await;
    let mut deliveries = subscribed(&broker).await;
    next(&mut deliveries).await.ack().await.unwrap();
    let _: u64 = told(
        &ground.url,
        &["XGROUP", "DESTROY", &stream(&ground), "group"],
    )
    .await;
    published(&broker, &[event("Happened", "1", 2)]).await;
    let error = end(&mut deliveries).await;
    assert!(error.contains("NOGROUP"), "{error}");
    assert!(error.contains(&stream(&ground)), "{error}");
    let mut deliveries = subscribed(&broker).await;
    for n in 1..=2 {
        let delivery = next(&mut deliveries).await;
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }
}

/// Nothing is left at all.
#[tokio::test]
async fn a_server_that_was_emptied_is_used_as_a_new_one() {
    let Some(ground) = Ground::<Redis>::private() else {
        return;
    };
    let broker = broker(&ground);
    published(&broker, &[event("Happened", "1", 1)]).await;
    let mut deliveries = subscribed(&broker).await;
    next(&mut deliveries).await.ack().await.unwrap();
    let _: () = told(&ground.url, &["FLUSHALL"]).await;
    let error = end(&mut deliveries).await;
    assert!(error.contains("NOGROUP"), "{error}");
    published(&broker, &[event("Happened", "1", 2)]).await;
    let mut deliveries = subscribed(&broker).await;
    assert_eq!(sequence(&next(&mut deliveries).await), 2);
}

/// By `XGROUP SETID`, backwards: it comes again; forwards: it is passed over.
#[tokio::test]
async fn a_group_that_was_moved_reads_from_there() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    let stream = stream(&ground);
    let mut deliveries = subscribed(&broker).await;
    published(&broker, &[event("Happened", "1", 1)]).await;
    next(&mut deliveries).await.ack().await.unwrap();
    let _: () = told(&ground.url, &["XGROUP", "SETID", &stream, "group", "0"]).await;
    published(&broker, &[event("Happened", "1", 2)]).await;
    for n in 1..=2 {
        let delivery = next(&mut deliveries).await;
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }
    // Both in one step, so that the reader sees no moment between.
    let script = "redis.call('XADD', KEYS[1], '*', 'a', 'b')
        redis.call('XGROUP', 'SETID', KEYS[1], 'group', '$')";
    let _: () = told(&ground.url, &["EVAL", script, "1", &stream]).await;
    published(&broker, &[event("Happened", "1", 3)]).await;
    let delivery = next(&mut deliveries).await;
    assert_eq!(delivery.malformation(), None);
    assert_eq!(sequence(&delivery), 3);
}

/// The rights that the book lists suffice, and what lacks is said without the user's name.
#[tokio::test]
async fn a_user_needs_few_rights() {
    let Some(ground) = Ground::<Redis>::private() else {
        return;
    };
    let mut admin = Redis::connect(&ground.url).await;
    let keys = format!("~{{{}.*", ground.topics.namespace());
    let common = ["ACL", "SETUSER", "mallory", "on", ">s3cret", &keys, "-@all"];
    let rights = [
        "+evalsha",
        "+script|load",
        "+xadd",
        "+time",
        "+xreadgroup",
        "+xread",
        "+xack",
        "+xautoclaim",
        "+xpending",
        "+xinfo|groups",
        "+xinfo|consumers",
        "+xgroup|create",
        "+xgroup|delconsumer",
        "+wait",
    ];
    let words = [&common[..], &rights[..]].concat();
    let _: () = ask(&mut admin, &words).await;
    let options = one_stream(&ground).credentials("mallory", "s3cret");
    let able = RedisBroker::new(&ground.url, options.clone())
        .unwrap()
        .keep(Duration::from_secs(60));
    for n in 1..=2 {
        let mut deliveries = subscribed(&able).await;
        published(&able, &[event("Happened", "1", n)]).await;
        let delivery = next(&mut deliveries).await;
        assert_eq!(sequence(&delivery), n);
        delivery.ack().await.unwrap();
    }

    let _: () = ask(
        &mut admin,
        &["ACL", "SETUSER", "mallory", "-xadd", "-xinfo"],
    )
    .await;
    let errors = crate::support::publish(&able, &[event("Happened", "1", 3)]).await;
    let publishing = errors[0].as_ref().unwrap();
    assert!(publishing.is_transient(), "{publishing}");
    let subscription = Subscription::new("group", ["Happened"]).of_partition(0);
    let Err(subscribing) = able.subscribe(subscription).await else {
        panic!("it subscribes without the right to");
    };
    for text in [publishing.to_string(), subscribing.to_string()] {
        assert!(text.contains("lists the commands"), "{text}");
        assert!(!text.contains("mallory"), "{text}");
    }
    let debug = format!("{able:?} {options:?}");
    assert!(
        !debug.contains("mallory") && !debug.contains("s3cret"),
        "{debug}"
    );
}

/// Fields are headers; nothing of it is lost, and it stands in nobody's way.
#[tokio::test]
async fn an_entry_without_content_is_malformed_with_its_fields() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    let stream = stream(&ground);
    let id: String = told(
        &ground.url,
        &["XADD", &stream, "*", "invoice", "17", "paid", "yes"],
    )
    .await;
    let mut deliveries = subscribed(&broker).await;
    let delivery = next(&mut deliveries).await;
    assert!(delivery.malformation().unwrap().contains("no CloudEvent"));
    let headers = &delivery.message.metadata.headers;
    assert_eq!(headers["invoice"], "17");
    assert_eq!(headers["paid"], "yes");
    assert_eq!(headers["outbox-topic"], stream);
    assert_eq!(headers["outbox-position"], id);
    let milliseconds: i64 = id.split('-').next().unwrap().parse().unwrap();
    let published_at = delivery.published_at().unwrap();
    assert_eq!(published_at.unix_timestamp(), milliseconds / 1000);
    delivery.ack().await.unwrap();
}

/// It says what is in its place.
#[tokio::test]
async fn a_key_that_is_no_stream_is_reported() {
    let Some(ground) = Ground::<Redis>::shared() else {
        return;
    };
    let broker = broker(&ground);
    let _: () = told(&ground.url, &["SET", &stream(&ground), "x"]).await;
    let errors = crate::support::publish(&broker, &[event("Happened", "1", 1)]).await;
    let error = errors[0].as_ref().unwrap();
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    let subscription = Subscription::new("group", ["Happened"]).of_partition(0);
    let Err(error) = broker.subscribe(subscription).await else {
        panic!("it subscribes to what is no stream");
    };
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}
