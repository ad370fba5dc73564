use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::point::Point;

/// What happens at a [`Point`].
#[derive(Clone)]
#[non_exhaustive]
pub enum Action {
    /// The step fails, as the point's documentation says.
    Fail,
    /// The step waits that long and goes on.
    Delay(Duration),
    /// The step panics.
    Panic,
    /// The process ends at once, by `abort`: no destructor runs, nothing is flushed, no connection
    /// is closed in good order. To the database and the broker it is a `kill -9`.
    Kill,
    /// A closure is called and its future awaited; make it with [`Action::run`].
    Run(Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>),
}

/// At which arrivals at its [`Point`] an [`Action`] happens; they are counted from 1, from the
/// moment when it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// Once, at that arrival. The 0th never comes.
    Nth(u64),
    /// At each arrival whose number is a multiple; 1 is each of them, 0 none.
    Every(u64),
}

impl Action {
    /// Calls `action` and awaits its future, for instance to hold a step back until a test lets it
    /// go.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use outbox_runtime::fault::{self, Action, Point, When};
    ///
    /// let gate = Arc::new(tokio::sync::Semaphore::new(0));
    /// let waiting = Arc::clone(&gate);
    /// let action = Action::run(move || {
    ///     let gate = Arc::clone(&waiting);
    ///     async move { drop(gate.acquire().await) }
    /// });
    /// let _installed = fault::install(Point::BeforeAck, When::Nth(1), action);
    /// ```
    pub fn run<F: Future<Output = ()> + Send + 'static>(
        action: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self::Run(Arc::new(move || Box::pin(action())))
    }

    pub(super) async fn happen(&self, point: Point) -> io::Result<()> {
        match self {
            Self::Fail => {
                let text = format!("a test lets `{point}` fail");
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, text));
            }
            Self::Delay(delay) => tokio::time::sleep(*delay).await,
            #[allow(clippy::panic, reason = "that is what the test asks for")]
            Self::Panic => panic!("a test lets `{point}` panic"),
            Self::Kill => std::process::abort(),
            Self::Run(action) => action().await,
        }
        Ok(())
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail => f.write_str("Fail"),
            Self::Delay(delay) => f.debug_tuple("Delay").field(delay).finish(),
            Self::Panic => f.write_str("Panic"),
            Self::Kill => f.write_str("Kill"),
            Self::Run(_) => f.write_str("Run"),
        }
    }
}

impl When {
    pub(super) const fn is_now(self, arrival: u64) -> bool {
        match self {
            Self::Nth(number) => arrival == number,
            Self::Every(number) => arrival.is_multiple_of(number),
        }
    }
}
