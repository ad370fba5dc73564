//! Ports on loopback.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Below the ports that systems give to outgoing connections (32768 and up on Linux): nobody takes
/// a server's port by chance while it is down. Above those that well-known servers use.
const RANGE: RangeInclusive<u16> = 16_000..=24_999;

const TRIES: usize = 100;

/// A port that is free now, and that no other server of this process was given. Another process can
/// take it before the server does, so callers try again.
pub(crate) fn free() -> Result<u16, String> {
    // RabbitMQ takes seconds until it listens, and a server may be down for a while.
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    (0..TRIES)
        .map(|_| fastrand::u16(RANGE))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok() && given.insert(*port))
        .ok_or_else(|| format!("no port of {TRIES} tried is free on loopback"))
}

/// Whether somebody listens.
pub(crate) fn is_open(port: u16) -> bool {
    connect(port).is_some()
}

/// Says something to a server and returns what it answers until that is `enough`, or until it says
/// no more.
pub(crate) fn ask(port: u16, say: &[u8], enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut answer = Vec::new();
    let Some(mut stream) = connect(port) else {
        return answer;
    };
    if stream.write_all(say).is_err() {
        return answer;
    }
    let mut piece = [0; 1024];
    while !enough(&answer) {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend(piece.iter().take(read)),
        }
    }
    answer
}

/// Whether somebody listens who speaks TLS: it refuses a greeting that is cut short with an alert.
pub(crate) fn speaks_tls(port: u16) -> bool {
    // A handshake record of four bytes: a greeting, of no length.
    let greeting = b"\x16\x03\x01\0\x04\x01\0\0\0";
    ask(port, greeting, |said| !said.is_empty()).starts_with(b"\x15\x03")
}

fn connect(port: u16) -> Option<TcpStream> {
    let patience = Duration::from_millis(500);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let stream = TcpStream::connect_timeout(&address, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.set_write_timeout(Some(patience)).ok()?;
    Some(stream)
}
