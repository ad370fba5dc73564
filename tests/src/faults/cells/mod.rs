//! The cells of the matrix: what goes wrong, and what that means on each database.

mod broker;
mod database;
pub(super) mod killed;
pub(super) mod load;
mod relays;

use outbox_runtime::fault::Point;

use super::NotExercised;
use super::arena::Needs;
use super::broker::Mood;
use super::database::FaultDb;
use super::stage::{Settings, Stage, Watcher};
use super::verdict::Verdict;

/// Something that goes wrong. The book's page `proof.md` says what each is on each database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it, and the book says more")]
pub enum Fault {
    KilledAtRandom,
    KilledAt(Point),
    StepsFail,
    DatabaseRestarted,
    ConnectionsCut,
    ListenerCut,
    BrokerRefuses,
    BrokerBlackHole,
    BrokerRestarted,
    BrokerDownAtStart,
    AnswersLost,
    SlowPublish,
    SlowHandler,
    ProcessClocks,
    DatabaseClock,
    Poison,
    RelayPaused,
    ShardsMove,
    ShutdownUnderLoad,
    Recovery,
    OneAggregate,
    Crowd,
    OldSnapshot,
}

impl Fault {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::KilledAtRandom];
        all.extend(Point::ALL.map(Self::KilledAt));
        all.extend([
            Self::StepsFail,
            Self::DatabaseRestarted,
            Self::ConnectionsCut,
            Self::ListenerCut,
            Self::BrokerRefuses,
            Self::BrokerBlackHole,
            Self::BrokerRestarted,
            Self::BrokerDownAtStart,
            Self::AnswersLost,
            Self::SlowPublish,
            Self::SlowHandler,
            Self::ProcessClocks,
            Self::DatabaseClock,
            Self::Poison,
            Self::RelayPaused,
            Self::ShardsMove,
            Self::ShutdownUnderLoad,
            Self::Recovery,
            Self::OneAggregate,
            Self::Crowd,
            Self::OldSnapshot,
        ]);
        all
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        match self {
            Self::KilledAtRandom => "killed-at-random",
            Self::KilledAt(point) => return format!("killed-{point}"),
            Self::StepsFail => "steps-fail",
            Self::DatabaseRestarted => "database-restarted",
            Self::ConnectionsCut => "connections-cut",
            Self::ListenerCut => "listener-cut",
            Self::BrokerRefuses => "broker-refuses",
            Self::BrokerBlackHole => "broker-black-hole",
            Self::BrokerRestarted => "broker-restarted",
            Self::BrokerDownAtStart => "broker-down-at-start",
            Self::AnswersLost => "answers-lost",
            Self::SlowPublish => "slow-publish",
            Self::SlowHandler => "slow-handler",
            Self::ProcessClocks => "process-clocks",
            Self::DatabaseClock => "database-clock",
            Self::Poison => "poison",
            Self::RelayPaused => "relay-paused",
            Self::ShardsMove => "shards-move",
            Self::ShutdownUnderLoad => "shutdown-under-load",
            Self::Recovery => "recovery-every-millisecond",
            Self::OneAggregate => "one-aggregate",
            Self::Crowd => "crowd",
            Self::OldSnapshot => "old-snapshot",
        }
        .to_owned()
    }

    /// How many messages it is tried with in the matrix, unless told otherwise.
    pub fn messages(self) -> u32 {
        match self {
            Self::Poison => 10_000,
            Self::OneAggregate | Self::OldSnapshot | Self::Crowd => 2_000,
            _ => 1_000,
        }
    }

    fn needs(self) -> Needs {
        match self {
            Self::DatabaseRestarted => Needs::Restarts,
            Self::DatabaseClock => Needs::Clock,
            _ => Needs::Nothing,
        }
    }

    /// Tries it on a database of its own and counts.
    ///
    /// # Errors
    /// [`NotExercised`] if this machine lacks something for it.
    pub async fn run<DB: FaultDb>(
        self,
        settings: Settings,
        watcher: &Watcher<'_>,
    ) -> Result<Verdict, NotExercised> {
        let arena = DB::arena(self.needs()).await?;
        let mut stage = Stage::set(arena, settings, watcher).await;
        self.play(&mut stage).await;
        Ok(stage.verdict().await)
    }

    async fn play<DB: FaultDb>(self, stage: &mut Stage<'_, DB>) {
        match self {
            Self::KilledAtRandom => killed::at_random(stage).await,
            Self::KilledAt(point) => killed::at_point(stage, point).await,
            Self::StepsFail => database::steps_fail(stage, &every_step()).await,
            Self::DatabaseRestarted => database::restarted(stage).await,
            Self::ConnectionsCut => database::cut(stage).await,
            Self::ListenerCut => database::listener_cut(stage).await,
            Self::BrokerRefuses => broker::moody(stage, Mood::Refusing).await,
            Self::BrokerBlackHole => broker::moody(stage, Mood::BlackHole).await,
            Self::BrokerRestarted => broker::restarted(stage).await,
            Self::BrokerDownAtStart => broker::down_at_the_start(stage).await,
            Self::AnswersLost => broker::forgetful(stage).await,
            Self::SlowPublish => broker::slow(stage).await,
            Self::SlowHandler => broker::slow_handler(stage).await,
            Self::ProcessClocks => database::clocks_of_processes(stage).await,
            Self::DatabaseClock => database::clock_of_database(stage).await,
            Self::Poison => load::poison(stage).await,
            Self::RelayPaused => relays::paused(stage).await,
            Self::ShardsMove => relays::shards_move(stage).await,
            Self::ShutdownUnderLoad => killed::shut_down(stage).await,
            Self::Recovery => load::recovery(stage).await,
            Self::OneAggregate => relays::one_aggregate(stage).await,
            Self::Crowd => load::crowd(stage).await,
            Self::OldSnapshot => load::snapshot(stage).await,
        }
    }
}

/// Each point fails at every so many arrivals; the numbers have no common divisor.
fn every_step() -> String {
    let every = [17, 19, 7, 5, 3, 11, 13, 23];
    let rules = Point::ALL
        .iter()
        .zip(every)
        .map(|(point, every)| format!("{point}:fail:every-{every}"));
    rules.collect::<Vec<_>>().join(",")
}
