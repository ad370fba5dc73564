use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{NoContext, Timestamp, Uuid};

/// The process's wall clock, as far as the runtime reads it: for the time inside a message id,
/// and for times that the health names.
///
/// All times that two processes compare are the database's: leases, retries, schedules,
/// `occurred_at`, ages. Waiting inside a process goes by its monotonic clock. What is left for the
/// wall clock are texts for people, the delays that [metrics](crate::telemetry::metrics) show, and
/// the ids, which are UUIDs of version 7 (RFC 9562) and begin with a time in
/// milliseconds. Nothing depends on that time, so a clock that is wrong or that jumps does no harm;
/// a test can set one with [`OutboxBuilder::clock`](crate::OutboxBuilder::clock) to show just that,
/// or to have ids of a known time.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// # async fn example(pool: sqlx::SqlitePool) -> Result<(), outbox_runtime::Error> {
/// use std::time::{Duration, SystemTime};
/// use outbox_runtime::{Clock, Outbox};
///
/// let ten_minutes_ahead = Clock::new(|| SystemTime::now() + Duration::from_secs(600));
/// let outbox = Outbox::builder("orders", pool).clock(ten_minutes_ahead).build()?;
/// # Ok(())
/// # }
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Reading>>);

type Reading = dyn Fn() -> SystemTime + Send + Sync;

impl Clock {
    /// A clock that is read by calling `now`, which may answer anything, also less than before.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// The operating system's clock, which an outbox has unless told otherwise.
    pub fn system() -> Self {
        Self(None)
    }

    /// What time it is. A time before 1970 counts as 1970.
    pub fn now(&self) -> SystemTime {
        match &self.0 {
            None => SystemTime::now(),
            Some(now) => now().max(UNIX_EPOCH),
        }
    }

    /// A new id that no other process has either, whatever the clock shows.
    pub(crate) fn new_id(&self) -> Uuid {
        if self.0.is_none() {
            // This one also counts up within a millisecond.
            return Uuid::now_v7();
        }
        let since = self.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = Timestamp::from_unix(NoContext, since.as_secs(), since.subsec_nanos());
        Uuid::new_v7(time)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            None => "Clock(system)",
            Some(_) => "Clock(set)",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;

    #[test]
    fn ids_have_the_clocks_time_and_differ_though_it_stands_still() {
        let time = UNIX_EPOCH + Duration::from_millis(1_234_567_890_123);
        let clock = Clock::new(move || time);
        let ids: HashSet<_> = (0..1000).map(|_| clock.new_id()).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            assert_eq!(id.get_version_num(), 7);
            assert_eq!(
                id.get_timestamp().map(|time| time.to_unix()),
                Some((1_234_567_890, 123_000_000))
            );
        }
    }

    #[test]
    fn a_time_before_1970_is_1970() {
        let clock = Clock::new(|| UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(clock.now(), UNIX_EPOCH);
        assert_eq!(
            clock.new_id().get_timestamp().map(|time| time.to_unix()),
            Some((0, 0))
        );
    }
}
