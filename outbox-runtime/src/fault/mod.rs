//! Fault points: places at which a test can make the runtime fail, wait, panic or die.
//!
//! **For tests only.** The cargo feature `fault-points` is in no default, and without it the points
//! are empty and none of what follows exists. Don't ship a program that was built with it.
//!
//! A crash between two statements can't be waited for from outside. So the runtime names the places
//! that matter, [`Point`], and a test says what is to happen when one of them is reached:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use outbox_runtime::fault::{self, Action, Point, When};
//!
//! // The third commit of this process looks failed although it happened.
//! let installed = fault::install(Point::AfterCommit, When::Nth(3), Action::Fail);
//! drop(installed); // and now it does not
//! # }
//! ```
//!
//! Points are the process's, not an outbox's: what is installed holds for all that runs in the
//! process. A test that shares its process with others should start a child and pass it
//! [`VARIABLE`]:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The child calls this first. `OUTBOX_FAULT=after-publish:kill:37` lets it die the 37th time
//! // that the broker has taken messages whose position is not stored.
//! outbox_runtime::fault::install_from_env()?;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "fault-points")]
mod action;
#[cfg(feature = "fault-points")]
mod from_env;
#[cfg(feature = "fault-points")]
mod installed;
mod point;

#[cfg(feature = "fault-points")]
pub use action::{Action, When};
#[cfg(feature = "fault-points")]
pub use from_env::{ParseFaultError, VARIABLE, install_from_env};
#[cfg(feature = "fault-points")]
pub(crate) use installed::at;
#[cfg(feature = "fault-points")]
pub use installed::{Installed, arrivals, install};
pub use point::Point;

/// Nothing is installed anywhere.
#[cfg(not(feature = "fault-points"))]
#[allow(clippy::unused_async, reason = "the other one awaits")]
#[inline(always)]
pub(crate) async fn at(_: Point) -> std::io::Result<()> {
    Ok(())
}
