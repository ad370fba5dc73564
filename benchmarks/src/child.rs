use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use outbox_runtime::broker::{PublishError, Publisher};
use outbox_runtime::domain::Message;
use outbox_runtime::relay::{Relay, RelayOptions};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgConnection;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use crate::bench::Bench;
use crate::cli::{Cli, RelayRole};
use crate::postgres::Server;
use crate::sections::Nowhere;

/// How often the leases are looked at while they settle, and how long that may take.
const LOOK: Duration = Duration::from_millis(20);
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// A relay in a process of its own: this very program in another role.
pub(crate) struct RelayProcess(Child);

/// What it tells when it ends.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    messages: u64,
    out_of_order: u64,
}

impl RelayProcess {
    pub(crate) fn start(bench: &Bench, role: &RelayRole) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--postgres", bench.server.url(), "relay"])
            .args(["--database", &role.database])
            .args(["--broker-millis", &role.broker_millis.to_string()])
            .args(["--lease-millis", &role.lease_millis.to_string()])
            .args(["--first-sequence", &role.first_sequence.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        Ok(Self(command.spawn().context("starting a relay's process")?))
    }

    /// A line of what the kernel says of the process's memory, in KiB: `VmRSS` is what it has now,
    /// `VmHWM` the most that it had.
    pub(crate) fn memory(&self, line: &str) -> Result<u64> {
        let id = self.0.id().context("the relay's process has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))
            .context("memory is measured by /proc, which Linux has")?;
        let mut lines = status.lines();
        let value = lines.find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
        let kib = value.and_then(|value| value.split_whitespace().next());
        Ok(kib
            .context("the kernel does not tell the memory")?
            .parse()?)
    }

    /// Ends it; gives how many messages it published, each aggregate's in order.
    pub(crate) async fn stop(mut self) -> Result<u64> {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().await?;
        ensure!(output.status.success(), "a relay's process failed");
        let report: Report = serde_json::from_slice(&output.stdout)?;
        ensure!(
            report.out_of_order == 0,
            "{} messages were out of order",
            report.out_of_order
        );
        Ok(report.messages)
    }
}

/// Waits until so many relays have equal parts of the shards.
pub(crate) async fn until_shared(connection: &mut PgConnection, relays: i64) -> Result<()> {
    let shared = async {
        loop {
            let (owners, fewest): (i64, i64) = sqlx::query_as(
                "SELECT count(*), coalesce(min(shards), 0) FROM (
                    SELECT count(*) AS shards FROM outbox_shard
                    WHERE owner IS NOT NULL GROUP BY owner
                 ) AS owner",
            )
            .fetch_one(&mut *connection)
            .await?;
            if owners == relays && fewest == 64 / relays {
                return anyhow::Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let limited = tokio::time::timeout(SETTLED_WITHIN, shared).await;
    limited.context("the relays did not share the shards out in time")?
}

/// The role of that process.
pub(crate) async fn relay(cli: &Cli, role: &RelayRole) -> Result<()> {
    let database = Server::at(&cli.postgres, &cli.prefix)?.named(&role.database);
    let pool = database.pool(4).await?;
    let nowhere = Nowhere::from_sequence(role.first_sequence);
    let broker = Slow {
        broker: nowhere.clone(),
        takes: Duration::from_millis(role.broker_millis),
    };
    let options = RelayOptions::default().lease(Duration::from_millis(role.lease_millis));
    let outbox = outbox_runtime::Outbox::new("bench", pool);
    let relay = Relay::new(outbox, broker).with_options(options)?;
    relay.run_until(input_ends()).await;
    let (messages, out_of_order) = nowhere.counts();
    let report = Report {
        messages,
        out_of_order,
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Also when whoever started the process is gone.
async fn input_ends() {
    let mut nothing = [0_u8; 16];
    while matches!(tokio::io::stdin().read(&mut nothing).await, Ok(1..)) {}
}

/// A broker that takes its time.
struct Slow {
    broker: Nowhere,
    takes: Duration,
}

#[async_trait]
impl Publisher for Slow {
    async fn publish(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        self.broker.publish(messages).await
    }
}
