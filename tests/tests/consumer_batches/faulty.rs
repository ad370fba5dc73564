use super::*;

/// Of the attempts some fail and some panic, messages come twice, and two instances share the work.
pub async fn faulty_handlers_in_batches_have_exact_effects<DB: LedgerDb>(fixture: Fixture<DB>) {
    let seed = std::env::var("OUTBOX_TEST_SEED").ok();
    let seed = seed
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("OUTBOX_TEST_SEED={seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let ledger = Ledger::open(&fixture).await;
    ledger.fail(3, dice.u64(..));
    let tireless = RetryPolicy::new().max_attempts(1_000);
    let options = options().concurrency(2).batch(16).retry(tireless);
    let instances = [(); 2].map(|()| ledger.consume(&fixture, options.clone(), &[SUM, COUNT]));
    // Each instance has lanes of its own, as a broker would share them out.
    let messages = messages(30, 12);
    let mut answers = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let (postman, _) = instances.get(n % 2).unwrap();
        for _ in 0..dice.usize(1..=2) {
            answers.push(postman.deliver(message));
        }
        if dice.u32(0..20) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    for answer in answers {
        assert_eq!(answer.await.unwrap(), Answer::Acknowledged);
    }
    let handled = || -> u64 {
        let handled = |(_, running): &(Postman, Running<DB>)| running.consumer.counts().handled;
        instances.iter().map(handled).sum()
    };
    eventually(|| handled() >= 720).await;
    let mut rolled_back = 0;
    for (_, running) in instances {
        rolled_back += running.consumer.counts().batches_rolled_back;
        running.stop().await.unwrap();
    }
    assert!(rolled_back > 0, "no batch failed");
    assert_eq!(consumer_support::parked(&fixture).await, 0);
    ledger.balances(&fixture, &messages, 2).await;
}
