//! Programs in Python, by the Python that `cargo xtask` has installed their packages for.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use outbox_servers::{Kind, PYTHON, REQUIRE_ALL};
use outbox_tests::brokers::TestBroker;
use outbox_tests::brokers::suite::Ground;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// Where a test talks with clients that are not ours; `None` if server or clients are not there.
pub(crate) fn ground<B: TestBroker>() -> Option<Ground<B>> {
    python()?;
    Ground::shared()
}

/// Publishes these lines.
pub(crate) async fn write<B: TestBroker>(ground: &Ground<B>, lines: &[Value]) {
    let mut program = command("write.py", ground)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    for line in lines {
        input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }
    drop(input);
    end(program).await;
}

/// A program that reads what is published from now on.
pub(crate) struct Reading {
    program: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Reading {
    /// Reads so many messages.
    pub(crate) async fn of<B: TestBroker>(ground: &Ground<B>, count: usize) -> Self {
        let mut program = command("read.py", ground)
            .args(["--count", &count.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(program.stdout.take().unwrap()).lines();
        let mut reading = Self { program, output };
        assert_eq!(reading.line().await.as_deref(), Some("ready"));
        reading
    }

    /// What it tells of the messages.
    pub(crate) async fn all(mut self) -> Vec<Value> {
        let mut told = Vec::new();
        while let Some(line) = self.line().await {
            told.push(serde_json::from_str(&line).unwrap());
        }
        end(self.program).await;
        told
    }

    async fn line(&mut self) -> Option<String> {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        line.expect("a line within a minute").unwrap()
    }
}

/// One of the programs, told where to read or write.
fn command<B: TestBroker>(program: &str, ground: &Ground<B>) -> Command {
    let mut command = Command::new(python().unwrap());
    let broker = match B::KIND {
        Kind::Nats => "nats",
        Kind::Kafka => "kafka",
        Kind::RabbitMq => "rabbitmq",
        Kind::Redis => "redis",
        Kind::Postgres => unreachable!("it is no broker"),
    };
    command
        // No compiled files among the sources.
        .arg("-B")
        .arg(Path::new(PACKAGE).join("interop").join(program))
        .args(["--broker", broker, "--url", &ground.url])
        // The suite's partitions.
        .args(["--namespace", ground.topics.namespace()])
        .args(["--partitions", "4"])
        .kill_on_drop(true);
    command
}

async fn end(mut program: Child) {
    let status = timeout(PATIENCE, program.wait()).await;
    let status = status.expect("an end within a minute").unwrap();
    assert!(status.success(), "{status}; what it said is above");
}

/// The one that we are told of, else the one among this workspace's tools.
fn python() -> Option<PathBuf> {
    let ours = Path::new(PACKAGE).join("../target/tools/interop/bin/python");
    let told = env::var_os(PYTHON).map(PathBuf::from);
    let found = told.or_else(|| ours.is_file().then_some(ours));
    if found.is_none() {
        let missing = format!("{PYTHON} names no Python with the clients");
        assert!(env::var_os(REQUIRE_ALL).is_none(), "{missing}");
        eprintln!("skipped: {missing}");
    }
    found
}
