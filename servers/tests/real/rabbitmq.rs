use std::io::{Read, Write};
use std::net::TcpStream;

use outbox_servers::{Kind, Server};

use super::client::{connect, more, number, send};

/// Sends a frame: 1 is a method, 2 a header, 3 a body.
fn frame(stream: &mut impl Write, kind: u8, channel: u8, payload: &[u8]) {
    let mut bytes = vec![kind, 0, channel];
    bytes.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    bytes.extend(payload);
    bytes.push(0xce);
    send(stream, &bytes);
}

/// Waits for a method and returns its arguments; nothing if the server closes or hangs up.
fn expect(stream: &mut impl Read, class: u8, method: u8) -> Option<Vec<u8>> {
    loop {
        let head = more(stream, 7)?;
        let payload = more(stream, number(&head[3..7]))?;
        more(stream, 1)?;
        match (head[0], &payload[..]) {
            (1, [0, at, 0, is, rest @ ..]) if (*at, *is) == (class, method) => {
                return Some(rest.to_vec());
            }
            // Connection.Close, Channel.Close
            (1, [0, 10, 0, 50, ..] | [0, 20, 0, 40, ..]) => return None,
            _ => {}
        }
    }
}

/// Logs in and returns what the server proposes; nothing if it refuses.
pub(crate) fn log_in(
    stream: &mut (impl Read + Write),
    user: &str,
    password: &str,
) -> Option<Vec<u8>> {
    send(stream, b"AMQP\0\0\x09\x01");
    expect(stream, 10, 10).unwrap();
    let secret = format!("\0{user}\0{password}");
    let length = u32::try_from(secret.len()).unwrap().to_be_bytes();
    let start = [
        b"\0\x0a\0\x0b\0\0\0\0\x05PLAIN",
        &length[..],
        secret.as_bytes(),
        b"\x05en_US",
    ];
    frame(stream, 1, 0, &start.concat());
    expect(stream, 10, 30)
}

fn open(server: &Server) -> TcpStream {
    let mut stream = connect(server.port()).unwrap();
    let tune = log_in(&mut stream, "guest", "guest").unwrap();
    frame(&mut stream, 1, 0, &[b"\0\x0a\0\x1f", &tune[..]].concat());
    frame(&mut stream, 1, 0, b"\0\x0a\0\x28\x01/\0\0");
    expect(&mut stream, 10, 41).unwrap();
    frame(&mut stream, 1, 1, b"\0\x14\0\x0a\0");
    expect(&mut stream, 20, 11).unwrap();
    stream
}

#[test]
fn rabbitmq_keeps_what_it_confirmed() {
    super::keeps(
        Kind::RabbitMq,
        |server| {
            let mut stream = open(server);
            // Queue.Declare, durable
            frame(&mut stream, 1, 1, b"\0\x32\0\x0a\0\0\x01q\x02\0\0\0\0");
            expect(&mut stream, 50, 11).unwrap();
            // Confirm.Select
            frame(&mut stream, 1, 1, b"\0\x55\0\x0a\0");
            expect(&mut stream, 85, 11).unwrap();
            // Basic.Publish to the default exchange, persistent, five bytes
            frame(&mut stream, 1, 1, b"\0\x3c\0\x28\0\0\0\x01q\0");
            frame(&mut stream, 2, 1, b"\0\x3c\0\0\0\0\0\0\0\0\0\x05\x10\0\x02");
            frame(&mut stream, 3, 1, b"hello");
            expect(&mut stream, 60, 80).unwrap();
        },
        |server| {
            let mut stream = open(server);
            // Queue.Declare, passive: how many messages it has
            frame(&mut stream, 1, 1, b"\0\x32\0\x0a\0\0\x01q\x01\0\0\0\0");
            expect(&mut stream, 50, 11).is_some_and(|answer| number(&answer[2..6]) == 1)
        },
    );
}
