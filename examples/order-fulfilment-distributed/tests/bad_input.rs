//! What the program says when it can't do its work: one clear sentence without secrets, and exit
//! code 2.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

const NOWHERE: &str = "postgres://shop:topsecret@127.0.0.1:1/postgres";
const COMMANDS: [&[&str]; 5] = [
    &["service", "ordering"],
    &["relay"],
    &["place"],
    &["status"],
    &["reconcile", "--json"],
];

fn refused(arguments: &[&str], sentence: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_order-fulfilment-distributed"));
    for variable in [
        "FULFILMENT_BROKER",
        "FULFILMENT_BROKER_URL",
        "FULFILMENT_DATABASE_URL",
    ] {
        command.env_remove(variable);
    }
    let output = command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(
        said.contains(sentence),
        "{sentence:?} is missing in {said:?}"
    );
    assert!(output.stdout.is_empty(), "a result and an error at once");
    for bad in ["topsecret", "panicked"] {
        assert!(!said.contains(bad), "{said}");
    }
}

#[test]
fn a_database_that_can_t_be_reached() {
    for command in COMMANDS {
        let arguments = [command, &["--database", NOWHERE]].concat();
        refused(&arguments, "at 127.0.0.1:1 can't be reached");
    }
}

#[test]
fn a_database_that_is_none() {
    for (url, sentence) in [
        (
            "mysql://shop:topsecret@localhost/shop",
            "has to be a PostgreSQL server",
        ),
        ("topsecret", "has to be a PostgreSQL server"),
        (
            "postgres://shop:topsecret@localhost:notaport/shop",
            "can't be understood",
        ),
    ] {
        for command in COMMANDS {
            refused(&[command, &["--database", url]].concat(), sentence);
        }
    }
}

#[test]
fn a_broker_that_is_none() {
    for command in [&["service", "payment"][..], &["relay"]] {
        refused(
            &[command, &["--broker", "pigeon"]].concat(),
            "[possible values: nats",
        );
        for (url, sentence) in [
            ("pigeon://a:topsecret@loft", "begins with none of"),
            ("topsecret", "can't be understood"),
            ("nats://a:topsecret@", "the broker can't be used"),
            (
                "kafka://a:topsecret@host?no.such.setting=topsecret",
                "the broker can't be used",
            ),
            ("amqp://a:topsecret@host:port", "the broker can't be used"),
            ("redis://a:topsecret@host:port", "the broker can't be used"),
        ] {
            refused(&[command, &["--broker-url", url]].concat(), sentence);
        }
    }
}

#[test]
fn a_command_that_is_none() {
    refused(&["service", "shipping"], "[possible values: ordering");
    refused(&["relay", "--lease", "0"], "from 0.3 to 3600");
    refused(&["place", "--per-second", "NaN"], "from 0.01 to");
    refused(
        &["place", "--orders", "no/such/orders.csv"],
        "no/such/orders.csv",
    );
    refused(&[], "Usage");
}
