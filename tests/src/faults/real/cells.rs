use outbox_runtime::fault::Point;
use sqlx::Postgres;

use super::server::BrokerServer;
use super::{consumers, outages, publishing};
use crate::faults::arena::Needs;
use crate::faults::cells::{killed, load};
use crate::faults::{FaultDb, NotExercised, Settings, Stage, Verdict, Watcher};

/// Something that goes wrong with a real broker. The book's page `proof.md` says what each is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it, and the book says more")]
pub enum BrokerFault {
    KilledAtRandom,
    KilledAt(Point),
    BrokerKilled,
    BrokerFrozen,
    BrokerDownAtStart,
    BrokerRefusesSome,
    ShardsMove,
    ConsumersMove,
    OneAggregate,
    Poison,
    HandlersPanic,
}

impl BrokerFault {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::KilledAtRandom,
        Self::KilledAt(Point::AfterCommit),
        Self::KilledAt(Point::AfterPublish),
        Self::KilledAt(Point::BeforeHandle),
        Self::KilledAt(Point::BeforeAck),
        Self::BrokerKilled,
        Self::BrokerFrozen,
        Self::BrokerDownAtStart,
        Self::BrokerRefusesSome,
        Self::ShardsMove,
        Self::ConsumersMove,
        Self::OneAggregate,
        Self::Poison,
        Self::HandlersPanic,
    ];

    /// Its name on the command line.
    pub fn name(self) -> String {
        match self {
            Self::KilledAtRandom => "killed-at-random",
            Self::KilledAt(point) => return format!("killed-{point}"),
            Self::BrokerKilled => "broker-killed",
            Self::BrokerFrozen => "broker-frozen",
            Self::BrokerDownAtStart => "broker-down-at-start",
            Self::BrokerRefusesSome => "broker-refuses-some",
            Self::ShardsMove => "shards-move",
            Self::ConsumersMove => "consumers-move",
            Self::OneAggregate => "one-aggregate",
            Self::Poison => "poison",
            Self::HandlersPanic => "handlers-panic",
        }
        .to_owned()
    }

    /// How many messages it is tried with in the matrix, unless told otherwise.
    pub fn messages(self) -> u32 {
        match self {
            // A thousand of the writers, and one of the ledger for each.
            Self::OneAggregate => 2_000,
            Self::Poison => 1_000,
            Self::KilledAt(_) => 200,
            _ => 400,
        }
    }

    /// Tries it on a database of its own, at a server that is running, and counts.
    ///
    /// # Errors
    /// [`NotExercised`] if this machine lacks something for it.
    pub async fn run(
        self,
        server: &mut BrokerServer,
        settings: Settings,
        watcher: &Watcher<'_>,
    ) -> Result<Verdict, NotExercised> {
        let arena = Postgres::arena(Needs::Nothing).await?;
        let stage = Stage::set(arena, settings, watcher).await;
        let mut stage = stage.at_broker(server.url());
        if server.forgets_before_the_first_member() && self != Self::BrokerDownAtStart {
            introduce(&mut stage).await;
        }
        self.play(&mut stage, server).await;
        server.come_up();
        Ok(stage.verdict().await)
    }

    async fn play(self, stage: &mut Stage<'_, Postgres>, server: &mut BrokerServer) {
        match self {
            Self::KilledAtRandom => killed::at_random(stage).await,
            Self::KilledAt(point) => killed::at_point(stage, point).await,
            Self::BrokerKilled => outages::killed(stage, server).await,
            Self::BrokerFrozen => outages::frozen(stage, server).await,
            Self::BrokerDownAtStart => outages::down_at_the_start(stage, server).await,
            Self::BrokerRefusesSome => publishing::refused(stage).await,
            Self::ShardsMove => publishing::shards_move(stage).await,
            Self::OneAggregate => publishing::one_aggregate(stage, server).await,
            Self::ConsumersMove => consumers::moved(stage, server).await,
            Self::Poison => load::poison(stage).await,
            Self::HandlersPanic => consumers::panicking(stage).await,
        }
    }
}

/// Has a member of the group come and go, as whoever puts a new service on RabbitMQ is told to start
/// its consumers first.
async fn introduce(stage: &mut Stage<'_, Postgres>) {
    let consumer = stage.plan().only_consumes();
    stage.start(consumer);
    outages::wait_for_health(stage, "the app is ready", 1).await;
    stage.dismiss().await;
}
