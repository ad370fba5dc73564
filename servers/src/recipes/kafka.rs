//! A server that speaks Kafka's protocol.
//!
//! Kafka itself needs Java and no package system that the tests use has it, so this is `noida-db`
//! (one program, from PyPI), as far as its version 0.2.3 goes:
//!
//! - A topic comes into being, with one partition, when somebody asks for it; others are made with
//!   `CreateTopics`. There are `__consumer_offsets` and `__transaction_state` from the start.
//! - It holds everything in memory and writes all of it to `kafka.json` once or twice a second while
//!   it changes, and when it is stopped by its own command. Such a stop keeps everything, also what
//!   an idempotent producer is asked for afterwards; SIGTERM alone loses what it confirms at the end.
//!   A kill loses what it confirmed since the file was written: offsets are then
//!   given a second time, and an idempotent producer that goes on is told that its numbers are out
//!   of order, which is the end of it (librdkafka: a fatal error). Kafka does neither.
//! - It restarts on the same port and data within a fraction of a second.
//! - Its documented options have neither TLS nor SASL.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Recipe, Site};
use crate::docker::Image;
use crate::process::Process;
use crate::source::{KAFKA_PROGRAM, installed_kafka};
use crate::{KAFKA_SERVER, command, ports};

pub(super) struct Kafka;

impl Recipe for Kafka {
    /// Where the variable says, else among this workspace's tools, else in PATH.
    fn find(&self) -> Result<PathBuf, String> {
        let program = match std::env::var_os(KAFKA_SERVER) {
            Some(told) => Some(PathBuf::from(told)).filter(|file| file.is_file()),
            None => installed_kafka().or_else(|| command::find(KAFKA_PROGRAM)),
        };
        let program = program.ok_or_else(|| {
            format!("there is no program `{KAFKA_PROGRAM}`, and {KAFKA_SERVER} names none")
        })?;
        Ok(itself(&program).unwrap_or(program))
    }

    fn can_be_closed(&self) -> bool {
        false
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        let mut command = site.command(site.program(), "KILL");
        command
            .args(["start", "--only", "kafka", "--host", "127.0.0.1"])
            .args(["--kafka-port", &site.port.to_string(), "--data-dir"])
            .arg(site.folder.join("kafka"));
        processes.push(site.spawn(command, "kafka")?);
        Ok(())
    }

    /// On SIGTERM it writes its file and then confirms for some milliseconds more, which is lost. Its
    /// own command ends the service before it writes.
    fn before_stop(&self, site: &Site) {
        let stopped = Command::new(site.program())
            .args(["stop", "kafka", "--data-dir"])
            .arg(site.folder.join("kafka"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        // Without it, it is stopped as well as can be.
        drop(stopped);
    }

    fn is_ready(&self, site: &Site) -> bool {
        // Its length, `ApiVersions` in its first version, a number to know the answer by, nobody.
        let request = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff";
        let answer = ports::ask(site.port, request, |said| said.len() >= 8);
        answer.get(4..8) == Some(b"\0\0\0\x07")
    }

    fn url(&self, site: &Site) -> String {
        site.address("kafka", "kafka", "")
    }

    /// Kafka itself, which keeps what it confirmed. It has to be told where its clients find it.
    fn image(&self, site: &Site) -> Image {
        let environment = [
            ("KAFKA_NODE_ID", "1"),
            ("KAFKA_PROCESS_ROLES", "broker,controller"),
            ("KAFKA_CONTROLLER_QUORUM_VOTERS", "1@localhost:9093"),
            ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"),
            ("KAFKA_LISTENERS", "PLAINTEXT://:9092,CONTROLLER://:9093"),
            (
                "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            ),
            ("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1"),
            ("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1"),
            ("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1"),
            ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0"),
        ];
        let mut environment = environment
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec();
        environment.push((
            "KAFKA_ADVERTISED_LISTENERS",
            format!("PLAINTEXT://127.0.0.1:{}", site.port),
        ));
        Image {
            name: "apache/kafka:3.9.1",
            environment,
            arguments: &[],
            port: 9092,
        }
    }
}

/// The program itself: what stands in an environment's `bin` is a script that waits for it, and a
/// kill of the script alone would leave it running.
fn itself(script: &Path) -> Option<PathBuf> {
    let libraries = script.parent()?.parent()?.join("lib");
    let versions = std::fs::read_dir(libraries).ok()?.flatten();
    versions
        .map(|version| {
            version
                .path()
                .join("site-packages/noida_db")
                .join(KAFKA_PROGRAM)
        })
        .find(|file| file.is_file())
}
