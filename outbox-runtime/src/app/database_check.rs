use std::time::Duration;

use sqlx::Connection;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::error_text;
use crate::health::{DATABASE, HealthHandle};
use crate::store::Backend;
use crate::unit_of_work::Outbox;

/// How often the database is asked whether it is there.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long it may take to get a connection and an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps the readiness right about the database until `stop`.
///
/// A pool that has no connection free for so long counts as a database that does not answer:
/// requests would wait as long.
pub(super) async fn check_database<DB: Backend>(
    outbox: Outbox<DB>,
    health: HealthHandle,
    stop: CancellationToken,
) {
    let checking = async {
        loop {
            match timeout(PATIENCE, ping(&outbox)).await {
                Ok(Ok(())) => health.make_ready(DATABASE),
                Ok(Err(error)) => {
                    health.make_unready(
                        DATABASE,
                        format!(
                            "the database can't be reached: {}",
                            error_text::of_error(&error)
                        ),
                    );
                }
                Err(_) => health.make_unready(
                    DATABASE,
                    format!(
                        "the database did not answer within {} s, or no connection was free",
                        PATIENCE.as_secs()
                    ),
                ),
            }
            sleep(INTERVAL).await;
        }
    };
    stop.run_until_cancelled(checking).await;
}

async fn ping<DB: Backend>(outbox: &Outbox<DB>) -> Result<(), sqlx::Error> {
    let mut connection = outbox.pool().acquire().await?;
    connection.ping().await
}
