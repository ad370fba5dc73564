use serde::{Deserialize, Serialize};

/// What a run came to. All counts are the database's own, but for those that say so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Committed events that are to have an effect.
    pub messages: i64,
    /// Those that have none.
    pub lost: i64,
    /// Effects beyond the first of a message.
    pub duplicated: i64,
    /// Effects that came after one of a later event of their aggregate.
    pub out_of_order: i64,
    /// Halves: a change without its event, an event without its change, an effect without its
    /// event or without the change that belongs to it.
    pub torn: i64,
    /// How often the fault struck, as the harness counted it.
    pub strikes: u64,
    /// Messages that the broker was given or gave out once more, as it counted them.
    pub repeats: u64,
    /// What else is not as it should be: the fault never struck, a worker failed, nothing went on.
    pub problems: Vec<String>,
    /// A figure worth telling.
    pub remark: String,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// The most memory of a worker, in KiB, as the operating system counted it.
    pub peak_memory: u64,
}

impl Verdict {
    /// Whether every promise was kept, and the fault was there.
    pub fn is_clean(&self) -> bool {
        let broken = [self.lost, self.duplicated, self.out_of_order, self.torn];
        self.messages > 0 && broken == [0; 4] && self.problems.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_thing_makes_it_unclean() {
        let clean = Verdict {
            messages: 1,
            ..Verdict::default()
        };
        assert!(clean.is_clean());
        let changes: [fn(&mut Verdict); 6] = [
            |verdict| verdict.messages = 0,
            |verdict| verdict.lost = 1,
            |verdict| verdict.duplicated = 1,
            |verdict| verdict.out_of_order = 1,
            |verdict| verdict.torn = 1,
            |verdict| verdict.problems.push("the fault never struck".to_owned()),
        ];
        for change in changes {
            let mut verdict = clean.clone();
            change(&mut verdict);
            assert!(!verdict.is_clean(), "{verdict:?}");
        }
    }
}
