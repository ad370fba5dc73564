use std::time::Duration;

use outbox_runtime::prelude::*;
use sqlx::postgres::PgListener;

/// Longer than the limit of a notice, which is 8,000 bytes.
const LONG: usize = 20_000;

/// Something that would not fit into a notice.
#[domain_event(version = 1)]
struct Told {
    text: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_carries_no_data() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    let channel = "SELECT 'outbox_' || 'outbox_message'::regclass::oid";
    let channel = fixture.texts(channel).await.remove(0);
    let mut listener = PgListener::connect_with(&fixture.pool).await.unwrap();
    listener.listen(&channel).await.unwrap();
    for events in 1..=5 {
        let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
        let text = "secret".repeat(LONG);
        uow.raise(Told { text }).unwrap();
        uow.commit().await.unwrap();
        assert_eq!(fixture.events().await, events);
        let notice = tokio::time::timeout(Duration::from_secs(30), listener.recv());
        let notice = notice.await.expect("no notice").unwrap();
        assert_eq!((notice.channel(), notice.payload()), (&channel[..], ""));
    }
}
