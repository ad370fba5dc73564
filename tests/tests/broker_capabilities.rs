//! The book's table of what brokers can do is what they are seen to do.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use outbox_tests::brokers::suite::Capabilities;
use outbox_tests::brokers::{Kafka, Nats, RabbitMq, Redis};

const PAGE: &str = "../book/src/brokers/index.md";
const BEGIN: &str = "<!-- capabilities: begin -->\n";
const END: &str = "<!-- capabilities: end -->";
/// Has the table written anew.
const UPDATE: &str = "OUTBOX_UPDATE_BOOK";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_of_the_book_is_what_is_seen() {
    let all = tokio::join!(
        Capabilities::of::<Nats>(),
        Capabilities::of::<Kafka>(),
        Capabilities::of::<RabbitMq>(),
        Capabilities::of::<Redis>(),
    );
    let (Some(nats), Some(kafka), Some(rabbitmq), Some(redis)) = all else {
        eprintln!("skipped: not all brokers are here");
        return;
    };
    let table = table(&[
        ("NATS", nats),
        ("Kafka", kafka),
        ("RabbitMQ", rabbitmq),
        ("Redis", redis),
    ]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    if env::var_os(UPDATE).is_some() {
        fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(shown, table, "run the test with {UPDATE}=1");
    }
}

fn table(brokers: &[(&str, Capabilities)]) -> String {
    let mut table = String::from("\n|");
    for (name, _) in brokers {
        write!(table, " | {name}").unwrap();
    }
    table.push_str(" |\n|---|");
    table.push_str(&"---|".repeat(brokers.len()));
    let rows: Vec<_> = brokers.iter().map(|(_, seen)| seen.rows()).collect();
    let names = rows.first().into_iter().flatten().map(|(name, _)| name);
    for (place, name) in names.enumerate() {
        write!(table, "\n| {name}").unwrap();
        for row in &rows {
            let cell = row.get(place).map_or("", |(_, cell)| cell);
            write!(table, " | {cell}").unwrap();
        }
        table.push_str(" |");
    }
    table.push_str("\n\n");
    table
}
