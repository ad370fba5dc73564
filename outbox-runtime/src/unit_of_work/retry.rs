use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};

use super::outbox::Outbox;
use crate::store::{self, Backend, ConflictMark, Error};

/// How often [`Outbox::retry`] tries in all.
const ATTEMPTS: usize = 10;
const FIRST_DELAY: Duration = Duration::from_millis(2);
const LONGEST_DELAY: Duration = Duration::from_millis(200);

impl<DB: Backend> Outbox<DB> {
    /// Repeats an operation for as long as it ends in a version conflict, up to ten times with
    /// exponential backoff and jitter (2 to 200 ms). Where a stricter isolation than the usual one
    /// lets the database find the conflict first, its serialisation failures count as well.
    ///
    /// The operation must begin its own unit of work and load its aggregates anew each time. Its
    /// error may be any type whose [`source`](StdError::source) chain leads to the [`Error`], also
    /// transparently.
    ///
    /// ```
    /// # use outbox_runtime::prelude::*;
    /// # use outbox_runtime::Error;
    /// # #[cfg(feature = "sqlite")]
    /// # async fn example(outbox: Outbox<sqlx::Sqlite>) -> Result<(), Error> {
    /// outbox.retry(|| async {
    ///     let unit_of_work = outbox.begin(MessageContext::new()).await?;
    ///     // load, decide, save
    ///     unit_of_work.commit().await
    /// }).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// The operation's last error.
    ///
    /// # Cancel safety
    /// As safe as the operation: between two tries nothing is open.
    pub async fn retry<T, E, F>(&self, operation: impl FnMut() -> F) -> Result<T, E>
    where
        E: StdError + 'static,
        F: Future<Output = Result<T, E>>,
    {
        let policy = ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_delay(LONGEST_DELAY)
            .with_max_times(ATTEMPTS - 1)
            .with_jitter();
        operation
            .retry(policy)
            .when(|error: &E| is_version_conflict(error) || is_serialization_failure(error))
            .await
    }
}

/// Whether an error is, or was caused by, [`Error::VersionConflict`].
pub fn is_version_conflict(error: &(dyn StdError + 'static)) -> bool {
    let mut current = Some(error);
    while let Some(error) = current {
        if error.is::<ConflictMark>()
            || error
                .downcast_ref::<Error>()
                .is_some_and(Error::is_version_conflict)
        {
            return true;
        }
        current = error.source();
    }
    false
}

/// Whether the database took an operation back because another one was faster.
fn is_serialization_failure(error: &(dyn StdError + 'static)) -> bool {
    let mut current = Some(error);
    while let Some(error) = current {
        if error
            .downcast_ref::<sqlx::Error>()
            .is_some_and(store::is_serialization_failure)
        {
            return true;
        }
        current = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error(transparent)]
        Transparent(Error),
        #[error("it failed")]
        Sourced(#[source] Error),
    }

    fn conflict() -> Error {
        Error::VersionConflict {
            aggregate_type: "Order",
            aggregate_id: "7".to_owned(),
            expected_version: 1,
            mark: ConflictMark,
        }
    }

    #[test]
    fn a_conflict_is_found_however_it_is_wrapped() {
        assert!(is_version_conflict(&conflict()));
        assert!(is_version_conflict(&Wrapped::Transparent(conflict())));
        assert!(is_version_conflict(&Wrapped::Sourced(conflict())));
        assert!(!is_version_conflict(&Wrapped::Transparent(
            Error::MustRollBack
        )));
    }
}
