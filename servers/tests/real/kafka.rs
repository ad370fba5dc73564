use outbox_servers::{Kind, Server};

use super::client::{connect, number, send, take};

/// Asks for all topics (`Metadata`, version 1), or for one, which then comes into being.
fn metadata(server: &Server, topic: Option<&str>) -> Vec<u8> {
    let mut request = b"\0\x03\0\x01\0\0\0\x07\xff\xff".to_vec();
    match topic {
        None => request.extend(b"\xff\xff\xff\xff"),
        Some(name) => {
            request.extend(b"\0\0\0\x01\0");
            request.push(u8::try_from(name.len()).unwrap());
            request.extend(name.as_bytes());
        }
    }
    let mut stream = connect(server.port()).unwrap();
    let length = u32::try_from(request.len()).unwrap();
    send(&mut stream, &[&length.to_be_bytes()[..], &request].concat());
    let length = number(&take(&mut stream, 4));
    take(&mut stream, length)
}

#[test]
fn kafka_keeps_its_topics_when_it_is_stopped() {
    let topic = "a-topic-of-this-test";
    super::keeps(
        Kind::Kafka,
        |server| drop(metadata(server, Some(topic))),
        |server| String::from_utf8_lossy(&metadata(server, None)).contains(topic),
    );
}
