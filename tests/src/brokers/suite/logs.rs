//! What is logged, by us and by the broker's client.

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::Duration;

use super::{Ground, Member, event};
use crate::brokers::{PlainMessage, TestBroker};

/// Stands in payloads, and nowhere else.
const MARK: &str = "s3cr3t-mark";

/// Every line that was logged and holds the mark, as text or as a list of its bytes.
static LEAKS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Messages are taken, refused, returned, malformed and given back; at the level DEBUG and above
/// nobody tells what is in them.
pub async fn no_payload_is_logged<B: TestBroker>() {
    let Some(ground) = Ground::<B>::shared() else {
        return;
    };
    // No other test of the program sets one.
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(|| Leaks)
        .init();
    tracing::info!("a line with the mark {MARK} is found");
    assert_eq!(take_leaks().len(), 1);

    let (broker, bytes) = B::open_limited(&ground.url, ground.options());
    let mut member = Member::join(&broker, "group", &["Happened"]).await;
    let marked = |event_type: &str, id: &str, more: usize| {
        let mut message = event(event_type, id, 1);
        message.payload = format!("\"{MARK}{}\"", "x".repeat(more));
        message
    };
    let messages = [
        marked("Happened", "1", 0),
        marked("Unwanted", "2", 0),
        marked("Happened", "3", bytes),
    ];
    let results = broker.publish(&messages).await;
    assert!(results[0].is_ok() && results[2].is_err(), "{results:?}");
    let delivery = member.next().await;
    assert!(!format!("{delivery:?}").contains(MARK));
    delivery.nack().await.unwrap();
    member.take().await;
    let malformed = PlainMessage {
        event_type: "Happened".to_owned(),
        body: MARK.as_bytes().to_vec(),
        ..PlainMessage::default()
    };
    B::send(&ground.url, &ground.topics, malformed).await;
    let delivery = member.next().await;
    let reason = delivery.malformation().unwrap();
    assert!(!reason.contains(MARK), "{reason}");
    delivery.ack().await.unwrap();
    member.leave().await;
    // What is logged late.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let leaks = take_leaks();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

fn take_leaks() -> Vec<String> {
    std::mem::take(&mut *LEAKS.lock().unwrap())
}

struct Leaks;

impl Write for Leaks {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let as_numbers = format!("{:?}", MARK.as_bytes());
        let as_numbers = as_numbers.trim_matches(['[', ']']);
        if text.contains(MARK) || text.contains(as_numbers) {
            LEAKS.lock().unwrap().push(text.into_owned());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
