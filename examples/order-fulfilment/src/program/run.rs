use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use order_fulfilment::Limits;
use order_fulfilment::intake::{self, Intake};
use order_fulfilment::placing::Placing;
use outbox_runtime::app::{App, RunningApp};
use outbox_runtime::prelude::*;
use sqlx::Pool;

use super::args::Args;
use super::database::{Database, ProgramDb, Progress};
use super::progress::Bars;
use super::reconciliation::{Reconciliation, ThisRun};
use super::relays::Relays;
use super::rough_broker::RoughBroker;

/// How often the progress is looked at, and how much of the time that may cost at most: one part
/// in so many, since counting many events takes its time.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOK_SHARE: u32 = 20;

/// Runs the program; `Ok(false)` when the books do not balance.
pub(crate) async fn run(args: Args) -> anyhow::Result<bool> {
    let intake = match &args.orders {
        Some(path) => intake::read(path)?,
        None => intake::parse("the included sample", intake::SAMPLE.as_bytes())?,
    };
    let (database, place) = Database::connect(&args.database).await?;
    let bars = Bars::new(intake.orders.len(), args.json);
    for refusal in &intake.refused {
        bars.say(&format!("refused: {refusal}"));
    }
    bars.say(&format!("{} orders, {place}", intake.orders.len()));
    let program = Program {
        args,
        intake,
        place,
        bars,
    };
    match database {
        Database::Sqlite(pool) => program.fulfil(pool).await,
        Database::Postgres(pool) => program.fulfil(pool).await,
    }
}

struct Program {
    args: Args,
    intake: Intake,
    place: String,
    bars: Bars,
}

impl Program {
    async fn fulfil<DB: ProgramDb>(mut self, pool: Pool<DB>) -> anyhow::Result<bool> {
        let outbox = Outbox::new("order-fulfilment", pool.clone());
        outbox
            .migrate()
            .await
            .context("the outbox's tables can't be made")?;
        DB::create_tables(&pool)
            .await
            .context("the contexts' tables can't be made")?;

        // Consumers and relay are two apps here, so that the relay can be killed alone. A service
        // starts one app with both.
        let broker = Arc::new(RoughBroker::new(self.args.duplicates, self.args.seed));
        let consumers = App::new(outbox.clone())
            .subscriber(Arc::clone(&broker))
            .state(Limits {
                opening_stock: self.args.opening_stock,
                credit_cents: self.args.credit_cents,
            })
            .without_relay()
            .start()
            .await?;
        let mut relays = Relays::start(
            outbox.clone(),
            Arc::clone(&broker),
            self.args.relay_restarts.into(),
        )
        .await?;

        // The orders are placed while the first of them are fulfilled already.
        let placing = Placing::default();
        let (contradictions, end) = tokio::try_join!(
            placing.place_all(&outbox, &self.intake.orders),
            self.watch(&pool, &placing, &consumers, &mut relays),
        )?;
        self.bars.finish();
        if let End::Stalled(reason) = end {
            self.bars.say(&reason);
        }
        for refusal in &contradictions {
            self.bars.say(&format!("refused: {refusal}"));
        }

        let books = DB::books(&pool).await.context("the books can't be read")?;
        let this_run = ThisRun {
            orders_read: self.intake.orders.len() + self.intake.refused.len(),
            orders_refused: self.intake.refused.len() + contradictions.len(),
            orders_placed: placing.placed(),
            orders_already_placed: placing.already_placed(),
            messages_published: broker.published(),
            messages_repeated_on_purpose: broker.repeated(),
            duplicates_absorbed: consumers.counts().consumers.duplicates,
            relay_restarts: relays.restarts(),
        };
        // Whatever they could not finish would be done by the next run.
        for rest in [relays.stop().await, consumers.shutdown().await] {
            if let Err(error) = rest {
                self.bars.say(&error.to_string());
            }
        }
        self.intake.refused.extend(contradictions);
        let reconciliation = Reconciliation::new(self.place, this_run, self.intake.refused, books)?;
        print(&reconciliation.print(self.args.json)?)?;
        Ok(reconciliation.is_balanced())
    }

    /// Follows the orders to their end, and restarts the relay on the way.
    async fn watch<DB: ProgramDb>(
        &self,
        pool: &Pool<DB>,
        placing: &Placing,
        consumers: &RunningApp,
        relays: &mut Relays<DB>,
    ) -> anyhow::Result<End> {
        let start = progress(pool).await?;
        let mut last = start;
        let mut moved_at = Instant::now();
        let mut pause = LOOK_EVERY;
        loop {
            tokio::time::sleep(pause).await;
            let looked_at = Instant::now();
            let now = progress(pool).await?;
            pause = LOOK_EVERY.max(looked_at.elapsed() * LOOK_SHARE);
            self.bars.show(placing, now);

            let of_this_file =
                (self.intake.orders.len() as u64).saturating_sub(placing.already_placed());
            let to_finish = of_this_file + (start.orders - start.finished).unsigned_abs();
            let finished = (now.finished - start.finished).unsigned_abs();
            let restarted = relays.restart_midway(finished, to_finish).await?;
            if restarted {
                self.bars.say("the relay was killed and started again");
            } else if placing.is_done() && now.is_drained() {
                return Ok(End::Drained);
            }
            if now != last {
                (last, moved_at) = (now, Instant::now());
            } else if moved_at.elapsed() > Duration::from_secs(self.args.patience) {
                let reason = format!(
                    "nothing has moved for {} s: {} of {} events are handled, {} of {} published; consumers: {}; relay: {}",
                    self.args.patience,
                    now.handled,
                    now.to_handle,
                    now.published,
                    now.events,
                    consumers.health().get(),
                    relays.health(),
                );
                if !placing.is_done() {
                    bail!(reason);
                }
                return Ok(End::Stalled(reason));
            }
        }
    }
}

/// How the watch came to its end.
enum End {
    /// Everything is published and handled.
    Drained,
    /// Something is left that does not move; the books will show what.
    Stalled(String),
}

fn print(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        // A reader such as `head` has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("the reconciliation can't be written to standard output"),
    }
}

async fn progress<DB: ProgramDb>(pool: &Pool<DB>) -> anyhow::Result<Progress> {
    DB::progress(pool)
        .await
        .context("the progress can't be read")
}
