//! The broker that does nothing: it only remembers what came.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Result, ensure};

use crate::message::Message;

/// Which messages were handled, and how often.
#[derive(Debug)]
pub struct Seen {
    marks: Box<[AtomicBool]>,
    distinct: AtomicU64,
    again: AtomicU64,
    strange: AtomicU64,
}

impl Seen {
    pub(crate) fn new(rows: u64) -> Self {
        Self {
            marks: (0..rows).map(|_| AtomicBool::new(false)).collect(),
            distinct: AtomicU64::new(0),
            again: AtomicU64::new(0),
            strange: AtomicU64::new(0),
        }
    }

    /// Takes a message over. What every handler does, and all that it does.
    pub fn handle(&self, message: &Message) {
        let mark = usize::try_from(message.number)
            .ok()
            .and_then(|number| self.marks.get(number));
        let counter = match mark {
            Some(mark) if !mark.swap(true, Ordering::Relaxed) => &self.distinct,
            Some(_) => &self.again,
            None => &self.strange,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// How many different messages were handled.
    pub(crate) fn distinct(&self) -> u64 {
        self.distinct.load(Ordering::Relaxed)
    }

    /// How many deliveries there were of messages that had been handled before.
    pub(crate) fn duplicates(&self) -> u64 {
        self.again.load(Ordering::Relaxed)
    }

    /// Fails unless every message was handled, and no other.
    pub(crate) fn check(&self) -> Result<()> {
        let (rows, handled) = (self.marks.len(), self.distinct());
        ensure!(
            u64::try_from(rows).is_ok_and(|rows| rows == handled),
            "wrong result: its tables say that all {rows} messages are done, but {handled} were handled"
        );
        let strange = self.strange.load(Ordering::Relaxed);
        ensure!(
            strange == 0,
            "wrong result: {strange} messages were handled that were never put in"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_message_is_an_error() {
        let seen = Seen::new(2);
        seen.handle(&Message::new(1));
        seen.handle(&Message::new(1));
        assert_eq!((seen.distinct(), seen.duplicates()), (1, 1));
        assert!(seen.check().is_err());
        seen.handle(&Message::new(0));
        assert!(seen.check().is_ok());
    }

    #[test]
    fn a_message_of_someone_else_is_an_error() {
        let seen = Seen::new(1);
        seen.handle(&Message::new(0));
        seen.handle(&Message::new(1));
        assert!(seen.check().is_err());
    }
}
