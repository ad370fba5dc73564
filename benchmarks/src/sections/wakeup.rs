use anyhow::{Result, ensure};
use async_trait::async_trait;
use outbox_runtime::Outbox;

use crate::bench::Bench;
use crate::child::{RelayProcess, until_shared};
use crate::cli::RelayRole;
use crate::contest::{Contestant, pair};
use crate::line::{Goal, Line};
use crate::load::hammer;
use crate::postgres::Database;
use crate::sections::commit::{SaveCommit, Stage};
use crate::sections::relay::{start_anew, until_recorded};

const CONNECTIONS: u16 = 32;

/// What telling a relay of the commits costs those who commit. On both sides a relay works in a
/// process of its own; without the wake-up it polls.
pub(crate) async fn run(bench: &Bench) -> Result<Vec<Line>> {
    let database = bench.server.database("wakeup").await?;
    let stage = Stage::new(bench, &database, CONNECTIONS).await?;
    let side = |is_told| Commits {
        bench,
        database: &database,
        stage: &stage,
        is_told,
    };
    let (told, untold) = pair(bench, &mut side(true), &mut side(false)).await?;
    stage.pool.close().await;
    database.drop().await?;
    Ok(vec![Line::compare(
        format!("commit, {CONNECTIONS} connections, the wake-up on | off"),
        "commits/s",
        Goal::AtLeast(0.9),
        &told,
        &untold,
    )])
}

struct Commits<'s> {
    bench: &'s Bench,
    database: &'s Database,
    stage: &'s Stage,
    is_told: bool,
}

#[async_trait]
impl Contestant for Commits<'_> {
    fn name(&self) -> String {
        match self.is_told {
            true => "commits with the wake-up".to_owned(),
            false => "commits without the wake-up".to_owned(),
        }
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        let accounts = self.stage.reset().await?;
        start_anew(&self.stage.pool).await?;
        let role = RelayRole {
            database: self.database.name().to_owned(),
            broker_millis: 0,
            lease_millis: 15_000,
            // The accounts are stored in version 1 already.
            first_sequence: 2,
        };
        let relay = RelayProcess::start(self.bench, &role)?;
        let mut connection = self.database.connect().await?;
        until_shared(&mut connection, 1).await?;
        let outbox = Outbox::builder("bench", self.stage.pool.clone())
            .notify(self.is_told)
            .build()?;
        let workers = accounts
            .into_iter()
            .map(|own| SaveCommit::new(outbox.clone(), own, 1));
        let done = hammer(workers.collect(), self.bench.span()).await?;
        until_recorded(&mut connection, done.times).await?;
        let published = relay.stop().await?;
        ensure!(
            published == done.times,
            "{published} messages were published of {} commits",
            done.times
        );
        self.stage.check(done.times, 1).await?;
        Ok(vec![done.per_second()])
    }
}
