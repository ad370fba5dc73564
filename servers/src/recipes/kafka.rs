//! A server that speaks Kafka's protocol.
//!
//! Kafka itself needs Java and no package system that the tests use has it, so this is `noida-db`
//! (one program, from PyPI), as far as its version 0.2.3 goes:
//!
//! - A topic comes into being, with one partition, when somebody asks for it; others are made with
//!   `CreateTopics`. There are `__consumer_offsets` and `__transaction_state` from the start.
//! - It holds everything in memory and writes all of it to `kafka.json` now and then while it
//!   changes, and in full on SIGTERM. A kill loses what it confirmed in the last second; after it,
//!   offsets are given a second time.
//! - It restarts on the same port and data within a fraction of a second.

use std::path::{Path, PathBuf};

use super::{Recipe, Site};
use crate::process::Process;
use crate::{KAFKA_SERVER, Setup, find, ports};

const PROGRAM: &str = "noida-db";

pub(super) struct Kafka;

impl Recipe for Kafka {
    /// Where the variable says, else among this workspace's tools, else in PATH.
    fn find(&self) -> Result<PathBuf, String> {
        let program = match std::env::var_os(KAFKA_SERVER) {
            Some(told) => Some(PathBuf::from(told)).filter(|file| file.is_file()),
            None => installed().or_else(|| find::program(PROGRAM)),
        };
        let program = program.ok_or_else(|| {
            format!("there is no program `{PROGRAM}`, and {KAFKA_SERVER} names none")
        })?;
        Ok(itself(&program).unwrap_or(program))
    }

    fn refuses(&self, setup: &Setup) -> Option<&'static str> {
        (setup.tls || setup.credentials.is_some())
            .then_some("its server knows neither TLS nor credentials")
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        let mut command = site.command(&site.program, "KILL");
        command
            .args(["start", "--only", "kafka", "--host", "127.0.0.1"])
            .args(["--kafka-port", &site.port.to_string(), "--data-dir"])
            .arg(site.folder.join("kafka"));
        processes.push(site.spawn(command, "kafka")?);
        Ok(())
    }

    fn is_ready(&self, site: &Site, _server: &Process) -> bool {
        // Its length, `ApiVersions` in its first version, a number to know the answer by, nobody.
        let request = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff";
        let answer = ports::ask(site.port, request, |said| said.len() >= 8);
        answer.get(4..8) == Some(b"\0\0\0\x07")
    }

    fn url(&self, site: &Site) -> String {
        format!("kafka://127.0.0.1:{}", site.port)
    }
}

/// Where `cargo xtask` installs it.
fn installed() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    [workspace.join(target), workspace.join("target")]
        .iter()
        .map(|target| target.join("tools/python/bin").join(PROGRAM))
        .find(|file| file.is_file())
}

/// The program itself: what stands in an environment's `bin` is a script that waits for it, and a
/// kill of the script alone would leave it running.
fn itself(script: &Path) -> Option<PathBuf> {
    let libraries = script.parent()?.parent()?.join("lib");
    let versions = std::fs::read_dir(libraries).ok()?.flatten();
    versions
        .map(|version| version.path().join("site-packages/noida_db").join(PROGRAM))
        .find(|file| file.is_file())
}
