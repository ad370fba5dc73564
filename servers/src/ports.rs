//! Ports on loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Below the ports that systems give to outgoing connections (32768 and up on Linux): nobody takes
/// a server's port by chance while it is down. Above those that well-known servers use.
const RANGE: RangeInclusive<u16> = 16_000..=24_999;

const TRIES: usize = 100;

/// A port that is free now. Another process can take it before the server does, so callers try
/// again.
pub(crate) fn free() -> Result<u16, String> {
    (0..TRIES)
        .map(|_| fastrand::u16(RANGE))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
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

fn connect(port: u16) -> Option<TcpStream> {
    let patience = Duration::from_millis(500);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let stream = TcpStream::connect_timeout(&address, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.set_write_timeout(Some(patience)).ok()?;
    Some(stream)
}
