use std::sync::Arc;
use std::time::Duration;

use outbox_runtime::backoff::Backoff;
use outbox_runtime::broker::{InProcessBroker, Publisher};
use outbox_runtime::inbox::{Consumer, ConsumerCounts, ConsumerOptions};
use outbox_runtime::{Message, MessageContext, Outbox};
use outbox_tests::bank::{Deposited, id};
use outbox_tests::{Fixture, message};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::dice::dice;
use crate::relays::Chaos;
use crate::shop::{self, LOAD, ShopDb};
use crate::writers::{Load, deposit, name, open_accounts};

const ACCOUNTS: usize = 50;
const EACH: i64 = 10;

outbox_tests::on_both_databases!(
    each_of_many_messages_delivered_five_times_at_once_has_one_effect,
    recovery_every_few_milliseconds_beside_fresh_inserts_has_one_effect_each,
);

/// A consumer of the mirror with a broker of its own, as in a process of its own.
struct Instance<DB: ShopDb> {
    broker: InProcessBroker,
    consumer: Arc<Consumer<DB>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl<DB: ShopDb> Instance<DB> {
    fn start(outbox: &Outbox<DB>) -> Self {
        let broker = InProcessBroker::new();
        let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(50));
        let consumer = Consumer::new(outbox.clone(), broker.clone())
            .with_options(ConsumerOptions::new().backoff(backoff))
            .select_consumers(|name| name == "shop.mirror");
        let consumer = Arc::new(consumer);
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let (consumer, stop) = (Arc::clone(&consumer), stop.clone());
            async move { consumer.run_until(stop.cancelled()).await.unwrap() }
        });
        Self {
            broker,
            consumer,
            stop,
            task,
        }
    }

    /// Waits until it takes messages: before that, nobody would.
    async fn takes(&self, message: &Message) {
        while self.consumer.counts() == ConsumerCounts::default() {
            self.broker.publish(std::slice::from_ref(message)).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Says how many messages it handled.
    async fn stop(self) -> u64 {
        self.stop.cancel();
        self.task.await.unwrap();
        self.consumer.counts().handled
    }
}

/// Publishes until everything is confirmed, as a relay would.
async fn deliver(broker: InProcessBroker, mut messages: Vec<Message>) {
    while !messages.is_empty() {
        let results = broker.publish(&messages).await;
        let mut results = results.into_iter();
        messages.retain(|_| results.next().is_none_or(|result| result.is_err()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn each_of_many_messages_delivered_five_times_at_once_has_one_effect<DB: ShopDb>(
    fixture: Fixture<DB>,
) {
    shop::create_tables(&fixture.outbox).await;
    let mut messages = Vec::new();
    for account in (0..ACCOUNTS).map(name) {
        // The mirror expects the first deposit behind the opening.
        for sequence in 2..2 + EACH {
            let account_id = id(&account);
            let event = Deposited {
                account_id,
                cents: 1,
            };
            messages.push(message(&event, &account, sequence));
        }
    }
    let instances = [
        Instance::start(&fixture.outbox),
        Instance::start(&fixture.outbox),
    ];
    for instance in &instances {
        instance.takes(&messages[0]).await;
    }
    let mut deliveries = JoinSet::new();
    for n in 0..5 {
        let broker = instances[n % 2].broker.clone();
        deliveries.spawn(deliver(broker, messages.clone()));
    }
    while deliveries.join_next().await.transpose().unwrap().is_some() {}
    let [one, two] = instances;
    let handled = one.stop().await + two.stop().await;
    let all = i64::try_from(ACCOUNTS).unwrap() * EACH;
    assert_eq!(i64::try_from(handled).unwrap(), all);
    let sum = |what: &str| format!("SELECT CAST(sum({what}) AS BIGINT) FROM mirror");
    assert_eq!(fixture.number(&sum("effects")).await, all);
    assert_eq!(fixture.number(&sum("misplaced")).await, 0);
    assert_eq!(fixture.events().await, all, "events of the effects");
    let inbox = "SELECT count(*) FROM inbox_message";
    assert_eq!(fixture.number(inbox).await, all);
}

async fn recovery_every_few_milliseconds_beside_fresh_inserts_has_one_effect_each<DB: ShopDb>(
    fixture: Fixture<DB>,
) {
    let mut dice = dice();
    let load = Load {
        events: 800,
        ..LOAD
    };
    open_accounts(&fixture.outbox, load.accounts).await;
    shop::create_tables(&fixture.outbox).await;
    let broker = shop::broker();
    let app = shop::open_with(&fixture.outbox, broker.clone()).await;
    // The first effect shows that the handlers take messages.
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    deposit(&mut uow, &name(0), 1).await.unwrap();
    uow.commit().await.unwrap();
    shop::all_have_effect(&fixture).await;
    // Beside the app's own relay others begin, take their share and vanish all the time.
    let outboxes = vec![fixture.outbox.clone(); 3];
    let chaos = Chaos::start(outboxes, 1..40, broker, &mut dice);
    load.run(&fixture.outbox, &mut dice).await;
    let stops = chaos.end().await;
    shop::all_have_effect(&fixture).await;
    app.shutdown().await.unwrap();
    shop::books_balance(&fixture).await;
    println!("{stops} relays were stopped");
}
