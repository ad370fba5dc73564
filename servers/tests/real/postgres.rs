use outbox_servers::{Kind, Server};

use super::client::{connect, number, send, take};

/// Runs a statement and returns all messages of the answer, each with its letter.
fn query(server: &Server, sql: &str) -> Vec<(u8, Vec<u8>)> {
    let mut stream = connect(server.port()).unwrap();
    let mut ask = |bytes: &[u8]| {
        send(&mut stream, bytes);
        let mut answers = Vec::new();
        // Until it is ready for the next one.
        while answers.last().is_none_or(|(letter, _)| *letter != b'Z') {
            let head = take(&mut stream, 5);
            let body = take(&mut stream, number(&head[1..5]) - 4);
            answers.push((head[0], body));
        }
        answers
    };
    let with_length = |body: &[u8]| {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&length.to_be_bytes()[..], body].concat()
    };
    ask(&with_length(
        b"\0\x03\0\0user\0postgres\0database\0postgres\0\0",
    ));
    ask(&[b"Q", &with_length(format!("{sql}\0").as_bytes())[..]].concat())
}

fn has(answers: &[(u8, Vec<u8>)], letter: u8) -> bool {
    answers.iter().any(|(found, _)| *found == letter)
}

#[test]
fn postgres_keeps_what_it_committed() {
    super::keeps(
        Kind::Postgres,
        |server| {
            let made = query(server, "CREATE TABLE t AS SELECT 7 AS seven");
            assert!(!has(&made, b'E'), "{made:?}");
        },
        // A row.
        |server| has(&query(server, "SELECT seven FROM t"), b'D'),
    );
}
