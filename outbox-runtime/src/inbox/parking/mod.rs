//! What could not be handled waits in the database, in order, and is tried again from there.

mod retrying;
mod store;
mod troubles;

pub(super) use retrying::retry_parked;
pub(super) use store::{Parking, waiting};
