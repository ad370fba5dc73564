use anyhow::{Result, ensure};
use async_trait::async_trait;

use crate::backlog::Backlog;
use crate::bench::Bench;
use crate::child::{RelayProcess, until_shared};
use crate::cli::RelayRole;
use crate::contest::{Contestant, measure};
use crate::line::{Goal, Line};
use crate::postgres::Database;
use crate::sections::relay::until_settled;

/// What a relay may take above what it has when there is nothing to do, in MiB.
const LIMIT: f64 = 64.0;

/// How long a call takes with the slow broker: the relay reads faster than that, and holds as
/// much as it ever does.
const SLOW_MILLIS: u64 = 10;

pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("memory").await?;
    let pool = database.pool(2).await?;
    database.outbox(&pool).await?;
    let rows = bench.rows(1_000_000, 100_000);
    bench.progress.say(format!("filling in {rows} rows"));
    let backlog = Backlog::of(pool.clone(), rows).await?;
    let mut lines = Vec::new();
    for (broker, broker_millis) in [("no-op", 0), ("slow", SLOW_MILLIS)] {
        let mut drained = Drained {
            bench,
            database: &database,
            backlog: &backlog,
            broker,
            broker_millis,
        };
        let samples = measure(bench, &mut [&mut drained]).await?;
        let mut figures = samples.into_iter().flatten();
        let (above, limit) = (figures.next(), figures.next());
        lines.push(Line::compare(
            format!("memory of a relay above idle, {rows} rows to a {broker} broker | the limit"),
            "MiB",
            Goal::AtMost(1.0),
            &above.unwrap_or_default(),
            &limit.unwrap_or_default(),
        ));
    }
    pool.close().await;
    database.drop().await?;
    Ok(lines)
}

/// A relay in a process of its own, first with nothing to do and then with a backlog.
struct Drained<'s> {
    bench: &'s Bench,
    database: &'s Database,
    backlog: &'s Backlog,
    broker: &'static str,
    broker_millis: u64,
}

#[async_trait]
impl Contestant for Drained<'_> {
    fn name(&self) -> String {
        format!("memory with a {} broker", self.broker)
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.backlog.hide().await?;
        let role = RelayRole {
            database: self.database.name().to_owned(),
            broker_millis: self.broker_millis,
            lease_millis: 15_000,
            first_sequence: 1,
        };
        let mut connection = self.database.connect().await?;
        let relay = RelayProcess::start(self.bench, &role)?;
        until_shared(&mut connection, 1).await?;
        let idle = relay.memory("VmRSS")?;
        self.backlog.show().await?;
        until_settled(&mut connection, self.backlog.rows()).await?;
        let most = relay.memory("VmHWM")?;
        let published = relay.stop().await?;
        let expected = u64::try_from(self.backlog.rows())?;
        ensure!(
            published == expected,
            "{published} messages were published, not {expected}"
        );
        Ok(vec![most.saturating_sub(idle) as f64 / 1024.0, LIMIT])
    }
}
