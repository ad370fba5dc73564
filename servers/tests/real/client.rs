//! The little that all protocols have in common.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Connects to a port on loopback, with a generous deadline for each answer.
pub(crate) fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

pub(crate) fn send(stream: &mut impl Write, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
}

pub(crate) fn take(stream: &mut impl Read, length: usize) -> Vec<u8> {
    more(stream, length).unwrap()
}

/// The same; nothing if the server hangs up.
pub(crate) fn more(stream: &mut impl Read, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// One line, without its end.
pub(crate) fn line(stream: &mut impl Read) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(take(stream, 1));
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line).unwrap()
}

/// A big-endian number.
pub(crate) fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}
