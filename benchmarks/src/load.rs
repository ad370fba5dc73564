use std::future::Future;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Someone who does one thing over and over.
pub(crate) trait Worker: Send + 'static {
    /// Does it once.
    fn once(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// How often something was done, and in what time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) times: u64,
    pub(crate) elapsed: Duration,
}

impl Done {
    pub(crate) fn per_second(self) -> f64 {
        self.times as f64 / self.elapsed.as_secs_f64()
    }
}

/// Lets all work side by side for a time; what was begun is finished and counts.
pub(crate) async fn hammer(workers: Vec<impl Worker>, span: Duration) -> Result<Done> {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for mut worker in workers {
        tasks.spawn(async move {
            let mut times = 0_u64;
            while began.elapsed() < span {
                worker.once().await?;
                times += 1;
            }
            anyhow::Ok(times)
        });
    }
    let mut times = 0;
    while let Some(done) = tasks.join_next().await {
        times += done.map_err(|panic| anyhow!("a worker ended early: {panic}"))??;
    }
    Ok(Done {
        times,
        elapsed: began.elapsed(),
    })
}
