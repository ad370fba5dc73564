//! Relays in front of real brokers.

use std::time::Instant;

use outbox_runtime::dead_letters::{LetterFilter, Note};
use sqlx::Postgres;

use super::server::BrokerServer;
use crate::faults::{Stage, Start, account};

/// The next deposit to each account in this table is larger than what a broker takes.
const GROWS: &str = "
    CREATE TABLE oversized (account TEXT PRIMARY KEY);
    CREATE FUNCTION grow() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM oversized WHERE account = NEW.aggregate_id;
        IF FOUND THEN
            NEW.payload := NEW.payload::jsonb
                || jsonb_build_object('padding', repeat('x', 1100000));
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER grow BEFORE INSERT ON outbox_message
    FOR EACH ROW WHEN (NEW.event_type = 'account.deposited') EXECUTE FUNCTION grow()";

/// How many accounts have a message that is refused.
const REFUSED: usize = 3;

/// Some messages among many are too large: they are dead, what follows of their aggregates waits, and
/// all else has its effect. Then they are made smaller and requeued, and all come.
pub(super) async fn refused(stage: &mut Stage<'_, Postgres>) {
    stage.command(GROWS).await;
    for number in 0..REFUSED {
        let sql = format!("INSERT INTO oversized VALUES ('{}')", account(number));
        stage.command(&sql).await;
    }
    for _ in 0..2 {
        stage.start(stage.plan());
    }
    stage.enough_strikes = REFUSED as u64;
    let dead = "SELECT count(*) FROM outbox_parked WHERE state = 'dead'";
    while !stage.is_over().await {
        stage.pause(50, 100).await;
        let refused = stage.arena.fixture.number(dead).await;
        stage.strikes = refused.unsigned_abs();
    }
    stage.end_writing().await;
    let missing = "SELECT count(*) FROM outbox_message m
        WHERE event_type IN ('account.deposited', 'ledger.entered')
        AND NOT EXISTS (SELECT 1 FROM effect
            WHERE message_id = replace(CAST(m.message_id AS TEXT), '-', ''))
        AND NOT EXISTS (SELECT 1 FROM outbox_parked p
            WHERE p.id = m.id AND state IN ('dead', 'waiting'))";
    let since = Instant::now();
    while stage.arena.fixture.number(missing).await > 0 {
        if since.elapsed() > stage.settings.standstill {
            let problem = "others wait although nobody refused them";
            stage.problems.push(problem.to_owned());
            break;
        }
        stage.pause(50, 50).await;
    }
    exactly_those(stage).await;
    let smaller = "UPDATE outbox_parked SET payload = (payload::jsonb - 'padding')::json
        WHERE state = 'dead'";
    stage.command(smaller).await;
    let letters = stage.arena.fixture.outbox.dead_letters();
    let note = Note::new("matrix", "made smaller").expect("a note");
    let requeued = letters.requeue(LetterFilter::new(), note).finish().await;
    if let Err(error) = requeued {
        stage.problems.push(error.to_string());
    }
    stage.drain().await;
}

/// Each dead message is a large one, and whatever waits does so behind one of its aggregate.
async fn exactly_those(stage: &mut Stage<'_, Postgres>) {
    let fixture = &stage.arena.fixture;
    let large = "SELECT count(*) FROM outbox_parked
        WHERE state = 'dead' AND length(CAST(payload AS TEXT)) > 1000000";
    let all = "SELECT count(*) FROM outbox_parked WHERE state = 'dead'";
    let large_of_all = (fixture.number(large).await, fixture.number(all).await);
    let beside = "SELECT count(*) FROM outbox_parked p WHERE state <> 'dead' AND NOT EXISTS
        (SELECT 1 FROM outbox_parked d WHERE d.state = 'dead' AND d.lane = p.lane AND d.id < p.id)";
    let beside = fixture.number(beside).await;
    let waiting = "SELECT count(*) FROM outbox_parked WHERE state = 'waiting'";
    let waiting = fixture.number(waiting).await;
    if large_of_all != (REFUSED as i64, REFUSED as i64) || beside > 0 {
        let (large, all) = large_of_all;
        stage.problems.push(format!(
            "{large} of {all} dead messages were too large, {beside} others stayed"
        ));
    }
    stage.remark = format!("{REFUSED} refused, {waiting} behind them waited, then all came");
}

/// Relays come, take their share of the shards and go, or oversleep, with batches under way: some
/// before the broker has them, some after.
pub(super) async fn shards_move(stage: &mut Stage<'_, Postgres>) {
    stage.enough_strikes = 6;
    let slowly = |plan| Start {
        faults: "before-publish:delay=40,after-publish:delay=80:every-3".to_owned(),
        ..Start::from(plan)
    };
    let base = stage.plan();
    stage.start(slowly(base));
    let guests = [0; 2].map(|_| {
        let relay = stage.plan().only_relays();
        stage.start(slowly(relay))
    });
    let mut turn = 0;
    while !stage.is_over().await {
        stage.pause(250, 600).await;
        let number = guests[stage.dice.usize(0..2)];
        match turn % 3 {
            0 => stage.kill(number),
            1 => {
                if !stage.workers[number].finish().await {
                    let problem = "a relay did not end in good order";
                    stage.problems.push(problem.to_owned());
                }
                stage.strikes += 1;
                stage.succeed(number);
            }
            _ => {
                stage.workers[number].pause();
                // The lease lasts 600 ms.
                stage.pause(900, 1300).await;
                stage.workers[number].wake();
                stage.strikes += 1;
            }
        }
        turn += 1;
    }
    stage.drain().await;
}

/// All events are of one aggregate; its relays are killed in turn, answers of the broker are lost,
/// and it dies once itself.
pub(super) async fn one_aggregate(stage: &mut Stage<'_, Postgres>, server: &mut BrokerServer) {
    stage.enough_strikes = 4;
    let mut writer = stage.plan().only_writes();
    writer.writers = 1;
    writer.accounts = 1;
    writer.rest = std::time::Duration::from_millis(2);
    stage.start(writer);
    for _ in 0..3 {
        let relay = stage.plan().silent();
        stage.start(Start {
            faults: "after-publish:fail:every-23".to_owned(),
            ..relay.into()
        });
    }
    let mut has_died = false;
    while !stage.is_over().await {
        stage.pause(2000, 3500).await;
        let number = stage.dice.usize(1..4);
        stage.kill(number);
        let effects = stage.look().await.unwrap_or_default().effects;
        if !has_died && effects > i64::from(stage.settings.messages) / 4 {
            has_died = true;
            server.go_down();
            stage.pause(100, 400).await;
            server.come_up();
        }
    }
    if !has_died {
        stage.problems.push("the broker never died".to_owned());
    }
    stage.drain().await;
}
