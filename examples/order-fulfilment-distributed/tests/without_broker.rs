//! While the broker is down, services start and wait, and orders are placed all the same.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use outbox_servers::{Kind, REQUIRE_ALL, Server, StartError};
use rustix::process::{Pid, Signal, kill_process};

/// Far more than any of it takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// A port where nobody serves, and a password that nobody may see.
const BROKER: &str = "nats://shop:topsecret@127.0.0.1:1";

fn postgres() -> Option<Server> {
    match Server::start(Kind::Postgres) {
        Ok(server) => Some(server),
        Err(missing @ StartError::NotInstalled { .. }) => {
            assert!(std::env::var_os(REQUIRE_ALL).is_none(), "{missing}");
            eprintln!("skipped: {missing}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn program(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_order-fulfilment-distributed"));
    command
        .args(arguments)
        .env("FULFILMENT_DATABASE_URL", server.url())
        .env("FULFILMENT_BROKER_URL", BROKER)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

fn ask(server: &Server, arguments: &[&str]) -> (Output, String) {
    let output = program(server, arguments).output().unwrap();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    (output, said)
}

/// A process and the lines of its log.
struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    fn start(server: &Server, arguments: &[&str]) -> Self {
        let mut child = program(server, arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            log.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    fn says(&mut self, what: &str) {
        while !self.seen.iter().any(|line| line.contains(what)) {
            let line = self.lines.recv_timeout(PATIENCE);
            self.seen
                .push(line.unwrap_or_else(|_| panic!("no {what:?} in {:#?}", self.seen)));
        }
    }

    fn ends_in_good_order(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.says("has come to rest");
        assert!(self.child.wait().unwrap().success());
        let degraded = self.seen.iter().filter(|line| line.contains("is degraded"));
        assert_eq!(degraded.count(), 1, "said once: {:#?}", self.seen);
        assert!(
            !self.seen.iter().any(|line| line.contains("topsecret")),
            "{:#?}",
            self.seen
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[test]
fn a_service_waits_and_orders_are_placed() {
    let Some(server) = postgres() else { return };
    let mut payment = Running::start(&server, &["service", "payment"]);
    payment.says("payment has started; its broker is nats://127.0.0.1:1");
    payment.says("payment is degraded");

    let (placed, said) = ask(&server, &["place"]);
    assert!(placed.status.success());
    assert!(
        said.starts_with("500 orders placed, 0 were there already"),
        "{said}"
    );
    let (again, said) = ask(&server, &["place", "--per-second", "1"]);
    assert!(again.status.success());
    assert!(
        said.starts_with("0 orders placed, 500 were there already"),
        "{said}"
    );

    // There is nothing of inventory yet.
    let (status, _) = ask(&server, &["status"]);
    assert_eq!(status.status.code(), Some(2));
    let mut inventory = Running::start(&server, &["service", "inventory"]);
    inventory.says("inventory is degraded");
    let (status, said) = ask(&server, &["status"]);
    assert!(status.status.success());
    assert!(
        said.contains("500 orders placed, 0 confirmed, 0 cancelled"),
        "{said}"
    );
    assert!(said.contains("There is more to do."), "{said}");
    let (reconciled, said) = ask(&server, &["reconcile"]);
    assert_eq!(reconciled.status.code(), Some(1));
    assert!(said.contains("something is still under way"), "{said}");

    // The relay waits for those who have never subscribed, and can be ended while it does.
    let mut relay = Running::start(&server, &["relay"]);
    relay.says("the relay waits until ordering has subscribed");
    kill_process(Pid::from_child(&relay.child), Signal::INT).unwrap();
    assert!(relay.child.wait().unwrap().success());
    payment.ends_in_good_order();
    inventory.ends_in_good_order();
}
