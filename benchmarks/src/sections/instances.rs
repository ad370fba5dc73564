use anyhow::{Result, ensure};
use async_trait::async_trait;
use tokio::time::Instant;

use crate::backlog::Backlog;
use crate::bench::Bench;
use crate::child::{RelayProcess, until_shared};
use crate::cli::RelayRole;
use crate::contest::{Contestant, Samples, measure};
use crate::line::{Goal, Line};
use crate::postgres::Database;
use crate::sections::relay::until_settled;

const MANY: u8 = 4;

pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("instances").await?;
    let pool = database.pool(2).await?;
    database.outbox(&pool).await?;
    let rows = bench.rows(1_000_000, 100_000);
    bench.progress.say(format!("filling in {rows} rows"));
    let backlog = Backlog::of(pool.clone(), rows).await?;
    // Shorter than the default, on both sides, so that the shards are shared out soon.
    let lease_millis = if bench.is_tiny() { 600 } else { 3_000 };
    let relays = |count| Relays {
        bench,
        database: &database,
        backlog: &backlog,
        count,
        lease_millis,
    };
    let (mut four, mut one) = (relays(MANY), relays(1));
    let mut samples = measure(bench, &mut [&mut four, &mut one])
        .await?
        .into_iter();
    let mut next = || samples.next().unwrap_or_default().into_iter();
    let (mut four, mut one) = (next(), next());
    let figure = |figures: &mut std::vec::IntoIter<Samples>| figures.next().unwrap_or_default();
    let lines = vec![
        Line::compare(
            format!("{MANY} relays in sum, {rows} rows | one"),
            "rows/s",
            Goal::AtLeast(1.0),
            &figure(&mut four),
            &figure(&mut one),
        ),
        Line::compare(
            format!("the relay of {MANY} that published the fewest rows | an equal part"),
            "rows",
            Goal::AtLeast(0.8),
            &figure(&mut four),
            &figure(&mut four),
        ),
    ];
    pool.close().await;
    database.drop().await?;
    Ok(lines)
}

/// Relays in processes of their own that have shared out the shards when the backlog appears.
struct Relays<'s> {
    bench: &'s Bench,
    database: &'s Database,
    backlog: &'s Backlog,
    count: u8,
    lease_millis: u64,
}

#[async_trait]
impl Contestant for Relays<'_> {
    fn name(&self) -> String {
        format!("{} relays", self.count)
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        self.backlog.hide().await?;
        let role = RelayRole {
            database: self.database.name().to_owned(),
            broker_millis: 0,
            lease_millis: self.lease_millis,
            first_sequence: 1,
        };
        let mut connection = self.database.connect().await?;
        let relays = (0..self.count)
            .map(|_| RelayProcess::start(self.bench, &role))
            .collect::<Result<Vec<_>>>()?;
        until_shared(&mut connection, self.count.into()).await?;
        let began = Instant::now();
        self.backlog.show().await?;
        until_settled(&mut connection, self.backlog.rows()).await?;
        let took = began.elapsed();
        let mut each = Vec::new();
        for relay in relays {
            each.push(relay.stop().await?);
        }
        let rows = self.backlog.rows();
        let published: u64 = each.iter().sum();
        ensure!(
            published == u64::try_from(rows)?,
            "{published} messages were published, not {rows}"
        );
        let fewest = each.into_iter().min().unwrap_or_default();
        let equal = rows as f64 / f64::from(self.count);
        Ok(vec![rows as f64 / took.as_secs_f64(), fewest as f64, equal])
    }
}
