use std::net::TcpStream;

use outbox_servers::{Kind, Server};

use super::client::{connect, line, send, take};

fn open(server: &Server) -> TcpStream {
    let mut stream = connect(server.port()).unwrap();
    assert!(line(&mut stream).starts_with("INFO "));
    send(
        &mut stream,
        b"CONNECT {\"verbose\":false}\r\nSUB inbox 1\r\n",
    );
    stream
}

/// Publishes and returns the answer.
fn request(stream: &mut TcpStream, subject: &str, payload: &str) -> String {
    let length = payload.len();
    let text = format!("PUB {subject} inbox {length}\r\n{payload}\r\n");
    send(stream, text.as_bytes());
    loop {
        let head = line(stream);
        if head == "PING" {
            send(stream, b"PONG\r\n");
            continue;
        }
        assert!(
            head.starts_with("MSG ") || head.starts_with("HMSG "),
            "{head}"
        );
        let length = head.rsplit(' ').next().unwrap().parse().unwrap();
        let answer = String::from_utf8(take(stream, length)).unwrap();
        take(stream, 2);
        return answer;
    }
}

#[test]
fn nats_keeps_what_it_confirmed() {
    super::keeps(
        Kind::Nats,
        |server| {
            let mut stream = open(server);
            let settings = r#"{"name":"S","subjects":["s.*"],"storage":"file"}"#;
            let made = request(&mut stream, "$JS.API.STREAM.CREATE.S", settings);
            assert!(made.contains("\"created\""), "{made}");
            let confirmed = request(&mut stream, "s.one", "hello");
            assert!(confirmed.contains("\"seq\":1"), "{confirmed}");
        },
        |server| {
            let mut stream = open(server);
            let info = request(&mut stream, "$JS.API.STREAM.INFO.S", "");
            info.contains("\"messages\":1")
        },
    );
}
