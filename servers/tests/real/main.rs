//! Each kind of server, started, killed, paused and started again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

mod client;
mod closed;
mod kafka;
mod nats;
mod postgres;
mod rabbitmq;
mod redis;

use std::time::{Duration, Instant};

use outbox_servers::{Kind, REQUIRE_ALL, Server, Setup, StartError};

/// A server, or nothing where this machine has none and none is required.
fn start(kind: Kind, setup: Setup) -> Option<Server> {
    let since = Instant::now();
    match Server::start_with(kind, setup) {
        Ok(server) => {
            println!("{kind} serves after {} ms", since.elapsed().as_millis());
            Some(server)
        }
        Err(StartError::NotInstalled { kind, why }) => {
            assert!(
                std::env::var_os(REQUIRE_ALL).is_none(),
                "{kind} is required: {why}"
            );
            println!("skipped: {kind} is not installed: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn run_again(server: &mut Server) {
    let (url, since) = (server.url().to_owned(), Instant::now());
    server.run().unwrap();
    assert_eq!(server.url(), url);
    let took = since.elapsed().as_millis();
    println!("{} serves again after {took} ms", server.kind());
}

/// What a kind's tests have in common: `write` puts something there, `read` says whether it is.
fn keeps(kind: Kind, write: impl Fn(&Server), read: impl Fn(&Server) -> bool + Sync) {
    let Some(mut server) = start(kind, Setup::default()) else {
        return;
    };
    assert!(server.is_running());
    assert!(
        server
            .url()
            .contains(&format!("127.0.0.1:{}", server.port()))
    );
    write(&server);
    assert!(read(&server), "what was written is there");

    if kind.keeps_confirmed_when_killed() {
        server.kill();
        assert!(!server.is_running());
        assert!(!is_open(&server), "a killed server has no port");
        run_again(&mut server);
        assert!(read(&server), "it is there after a kill");
    }

    server.stop();
    assert!(!server.is_running());
    assert!(!is_open(&server), "a stopped server has no port");
    run_again(&mut server);
    assert!(read(&server), "it is there after a stop");

    server.pause();
    assert!(server.is_running());
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&server));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!reading.is_finished(), "a paused server answers nobody");
        server.resume();
        assert!(reading.join().unwrap(), "it goes on where it was");
    });

    let other = start(kind, Setup::default()).unwrap();
    assert_ne!(server.port(), other.port());
    assert!(!read(&other), "each has data of its own");
    let port = server.port();
    drop(server);
    assert!(client::connect(port).is_err(), "a dropped server is gone");
}

fn is_open(server: &Server) -> bool {
    client::connect(server.port()).is_ok()
}

/// Threads come and go in tests; the kernel's word of a parent's end is of a thread.
#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let starting = std::thread::spawn(|| start(Kind::Redis, Setup::default()));
    let Some(mut server) = starting.join().unwrap() else {
        return;
    };
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.is_running());
    assert!(is_open(&server));
}

/// Set for the process that is killed.
const VICTIM: &str = "OUTBOX_SERVERS_VICTIM";

#[test]
fn no_server_outlives_the_process_that_started_it() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    if std::env::var_os(VICTIM).is_some() {
        let servers: Vec<_> = Kind::ALL
            .into_iter()
            .filter_map(|kind| Server::start(kind).ok())
            .collect();
        for server in &servers {
            println!("port {}", server.port());
        }
        println!("ready");
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    if !std::path::Path::new("/usr/bin/setpriv").is_file() {
        println!("skipped: this system has no `setpriv`");
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "no_server_outlives_the_process_that_started_it"])
        .arg("--nocapture")
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let ports: Vec<u16> = lines
        .map(Result::unwrap)
        .take_while(|line| line != "ready")
        .filter_map(|line| line.strip_prefix("port ")?.parse().ok())
        .collect();
    victim.kill().unwrap();
    victim.wait().unwrap();
    if std::env::var_os(REQUIRE_ALL).is_some() {
        assert_eq!(ports.len(), Kind::ALL.len());
    }
    let since = Instant::now();
    for port in ports {
        while client::connect(port).is_ok() {
            assert!(since.elapsed() < Duration::from_secs(30), "{port} is open");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
