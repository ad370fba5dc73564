//! Many messages in one transaction: one claim for all, the handlers one after another, one commit.
//!
//! A batch is an optimization of what goes well. When anything in it fails, all of it is rolled back,
//! and each of its messages is handled alone, as if there were no batches; so what is parked, counted
//! and tried again is the same. The size adapts: it is halved by a failure, and doubles after a while
//! without one.
//!
//! A batch never waits for messages. It takes those that are there when a turn comes free, each the
//! first of its lane.

mod attempt;
mod ready;
mod work;

pub(super) use ready::{Ready, Task};
pub(super) use work::work;
