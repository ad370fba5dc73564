use outbox_servers::{Kind, Server};

use super::client::{connect, line, send};

fn say(server: &Server, command: &str) -> String {
    let mut stream = connect(server.port()).unwrap();
    send(&mut stream, format!("{command}\r\n").as_bytes());
    line(&mut stream)
}

#[test]
fn redis_keeps_what_it_confirmed() {
    super::keeps(
        Kind::Redis,
        |server| assert_eq!(say(server, "SET key value"), "+OK"),
        // The value's length.
        |server| say(server, "GET key") == "$5",
    );
}
