use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::problem::{self, Problem};
use crate::store::Error;

/// An app could not start, or not end in time.
///
/// Its `Debug` is the report for people, as `main` prints by it what it returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The program does not fit together, or does not fit its database; all problems at once.
    #[error("{}", problem::list(.0))]
    Startup(Vec<Problem>),
    /// The database could not be looked at.
    #[error("the app can't start without its database: {0}; check its URL and that it is up")]
    Database(#[source] Error),
    /// Parts of the app were still busy at the shutdown deadline and were cancelled.
    ///
    /// Nothing is lost: what they were doing is done again after the next start.
    #[error("the app did not come to rest within {deadline:?}: {unfinished}")]
    Deadline {
        /// How long was waited.
        deadline: Duration,
        /// What was still going on.
        unfinished: String,
    },
}

/// The sentence, and a line for each cause that it does not name.
impl fmt::Debug for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let sentence = error.to_string();
            if !text.contains(&sentence) {
                text.push_str("\n  because: ");
                text.push_str(&sentence);
            }
            cause = error.source();
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_prints_is_for_people() {
        let problems = vec![Problem::at("src/main.rs", 7, "it lacks a state; set one")];
        assert_eq!(
            format!("{:?}", AppError::Startup(problems)),
            "1 problem keeps this program from starting:\n  src/main.rs:7: it lacks a state; set one"
        );
        let database = AppError::Database(Error::Database {
            doing: "reading",
            source: sqlx::Error::PoolTimedOut,
        });
        let text = format!("{database:?}");
        assert!(
            text.contains("while reading") && text.contains("\n  because: pool timed out"),
            "{text}"
        );
    }
}
