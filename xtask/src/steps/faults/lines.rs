use serde::Deserialize;

/// What the program `faults` tells, a line each.
#[derive(Debug, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum Line {
    /// How many runs there will be.
    Runs { runs: u64 },
    /// A run begins.
    Begin {
        fault: String,
        database: String,
        messages: u64,
    },
    /// How far it has come.
    Progress { messages: u64, effects: u64 },
    /// It is over.
    End(End),
    /// It can't be tried here.
    NotExercised {
        fault: String,
        database: String,
        why: String,
    },
}

/// What a run came to.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct End {
    pub(super) fault: String,
    pub(super) database: String,
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
