//! Servers with TLS and credentials.

use std::net::TcpStream;
use std::sync::Arc;

use outbox_servers::{Kind, Server, Setup, StartError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::{connect, line, send};
use super::{rabbitmq, run_again, start};

const USER: &str = "somebody";
/// As awkward as a password may be for a file or a URL.
const PASSWORD: &str = "p@ss \"word\"/\\#ä";

/// Where somebody speaks TLS.
type Closed = StreamOwned<ClientConnection, TcpStream>;

fn closed(kind: Kind, scheme: &str) -> Option<Server> {
    let setup = Setup::default().credentials(USER, PASSWORD).tls(true);
    let server = start(kind, setup)?;
    let start = format!("{scheme}://{USER}:p%40ss%20%22word%22%2F%5C%23%C3%A4@127.0.0.1:");
    assert!(server.url().starts_with(&start), "{}", server.url());
    Some(server)
}

/// Checks the server's certificate for an address and for a name.
fn secure(server: &Server, name: &'static str, stream: TcpStream) -> Closed {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(server.ca().unwrap()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, stream)
}

fn each_name(server: &Server, prepare: impl Fn(&mut TcpStream), check: impl Fn(Closed)) {
    for name in ["127.0.0.1", "localhost"] {
        let mut stream = connect(server.port()).unwrap();
        prepare(&mut stream);
        check(secure(server, name, stream));
    }
}

#[test]
fn redis_with_tls_and_credentials() {
    let Some(mut server) = closed(Kind::Redis, "rediss") else {
        return;
    };
    let check = |server: &Server| {
        each_name(
            server,
            |_| {},
            |mut stream| {
                send(&mut stream, b"PING\r\n");
                assert!(line(&mut stream).starts_with("-NOAUTH"));
                let length = PASSWORD.len();
                let user = format!("*3\r\n$4\r\nAUTH\r\n$8\r\n{USER}\r\n${length}\r\n");
                send(&mut stream, format!("{user}{PASSWORD}\r\n").as_bytes());
                assert_eq!(line(&mut stream), "+OK");
            },
        );
    };
    check(&server);
    server.kill();
    run_again(&mut server);
    check(&server);
}

#[test]
fn nats_with_tls_and_credentials() {
    let Some(server) = closed(Kind::Nats, "tls") else {
        return;
    };
    let log_in = |mut stream: Closed, password: &str| {
        let password = password.replace('\\', "\\\\").replace('"', "\\\"");
        let options = format!(
            r#"{{"verbose":true,"tls_required":true,"user":"{USER}","pass":"{password}"}}"#
        );
        send(&mut stream, format!("CONNECT {options}\r\n").as_bytes());
        line(&mut stream)
    };
    let greet = |stream: &mut TcpStream| {
        let greeting = line(stream);
        assert!(greeting.contains(r#""tls_required":true"#), "{greeting}");
    };
    each_name(&server, greet, |stream| {
        assert_eq!(log_in(stream, PASSWORD), "+OK");
    });
    each_name(&server, greet, |stream| {
        assert!(log_in(stream, "another").starts_with("-ERR"));
    });
}

#[test]
fn rabbitmq_with_tls_and_credentials() {
    let Some(server) = closed(Kind::RabbitMq, "amqps") else {
        return;
    };
    assert!(server.url().ends_with("/%2f"));
    each_name(
        &server,
        |_| {},
        |mut stream| assert!(rabbitmq::log_in(&mut stream, USER, PASSWORD).is_some()),
    );
    let mut stream = secure(&server, "localhost", connect(server.port()).unwrap());
    let guest = rabbitmq::log_in(&mut stream, "guest", "guest");
    assert!(guest.is_none(), "there is no guest");
}

#[test]
fn credentials_without_tls() {
    for kind in [Kind::Redis, Kind::Nats] {
        let setup = Setup::default().credentials(USER, PASSWORD);
        if let Some(server) = start(kind, setup) {
            assert!(server.ca().is_none());
            assert!(server.url().contains("@127.0.0.1:"));
        }
    }
}

#[test]
fn a_kind_that_can_not_be_closed_says_so() {
    for kind in [Kind::Postgres, Kind::Kafka] {
        match Server::start_with(kind, Setup::default().tls(true)) {
            Err(StartError::NotInstalled { .. }) => println!("skipped: {kind} is not installed"),
            Err(error) => assert!(error.to_string().contains("without TLS"), "{error}"),
            Ok(_) => panic!("{kind} does not know TLS"),
        }
    }
}
