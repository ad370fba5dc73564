use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use sqlx::postgres::{PgListener, PgPool};

use super::rate::Stamps;
use crate::contest::Contestant;
use crate::postgres::Database;

/// The physical limit: one connection notifies, another one listens, and nothing is stored.
pub(super) struct BareNotice {
    pool: PgPool,
    span: Duration,
}

impl BareNotice {
    pub(super) async fn new(database: &Database, span: Duration) -> Result<Self> {
        Ok(Self {
            pool: database.pool(4).await?,
            span,
        })
    }
}

#[async_trait]
impl Contestant for BareNotice {
    fn name(&self) -> String {
        "a bare NOTIFY and LISTEN".to_owned()
    }

    async fn run(&mut self) -> Result<Vec<f64>> {
        let stamps = Stamps::of(self.span);
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen("bare").await?;
        let heard = stamps.clone();
        let listening = tokio::spawn(async move {
            for _ in 0..heard.count() {
                heard.arrive(listener.recv().await?.payload().parse()?);
            }
            anyhow::Ok(())
        });
        stamps
            .open_loop(|number| {
                let (stamps, pool) = (stamps.clone(), self.pool.clone());
                async move {
                    let payload = number.to_string();
                    stamps.begin(number);
                    sqlx::query("SELECT pg_notify('bare', $1)")
                        .bind(payload)
                        .execute(&pool)
                        .await?;
                    stamps.end(number);
                    Ok(())
                }
            })
            .await?;
        let percentiles = stamps.percentiles().await?;
        listening.await??;
        Ok(percentiles)
    }
}
