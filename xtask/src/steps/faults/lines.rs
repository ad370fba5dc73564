use std::fmt;

use serde::Deserialize;

/// What the program `faults` tells, a line each.
#[derive(Debug, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum Line {
    /// How many runs there will be.
    Runs { runs: u64 },
    /// A run begins.
    Begin {
        #[serde(flatten)]
        cell: Cell,
        messages: u64,
    },
    /// How far it has come.
    Progress { messages: u64, effects: u64 },
    /// It is over.
    End(End),
    /// It can't be tried here.
    NotExercised {
        #[serde(flatten)]
        cell: Cell,
        why: String,
    },
}

/// What is tried where.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Cell {
    pub(super) fault: String,
    pub(super) database: String,
    /// `harness`, or a real one.
    pub(super) broker: String,
}

impl Cell {
    /// Whether its broker is a real one.
    pub(super) fn is_on_real_broker(&self) -> bool {
        self.broker != "harness"
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.is_on_real_broker() {
            true => &self.broker,
            false => &self.database,
        };
        write!(f, "{} on {place}", self.fault)
    }
}

/// What a run came to.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct End {
    #[serde(flatten)]
    pub(super) cell: Cell,
    pub(super) seed: u64,
    pub(super) clean: bool,
    pub(super) messages: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) out_of_order: u64,
    pub(super) torn: u64,
    pub(super) strikes: u64,
    pub(super) repeats: u64,
    pub(super) problems: Vec<String>,
    pub(super) remark: String,
    pub(super) millis: u64,
    pub(super) peak_memory: u64,
}

impl Line {
    /// Reads a line; nothing if it is something else.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_from_what_else_is_printed() {
        assert!(matches!(
            Line::read(r#"{"line":"runs","runs":3}"#),
            Some(Line::Runs { runs: 3 })
        ));
        assert!(Line::read("thread main panicked").is_none());
        assert!(Line::read("7").is_none());
    }
}
