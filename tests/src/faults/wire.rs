use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use outbox_runtime::Message;

/// What workers gave to a broker and got from it, in a file that outlives each of them.
///
/// A line is written before a publish is tried and after a message came, in one piece, by all
/// workers into the same file; a process that is killed has written it or not.
pub struct Wire(PathBuf);

/// Whether a message goes to the broker or comes from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A relay offers it.
    Out,
    /// A consumer has it.
    In,
}

/// What the file says.
#[derive(Debug, Default)]
pub struct Traffic {
    /// The ids of all that was offered, as hexadecimal digits.
    pub offered: BTreeSet<String>,
    /// How many messages were offered once more.
    pub offered_again: u64,
    /// How many messages came once more.
    pub came_again: u64,
}

impl Wire {
    /// The file at that path; it need not be there yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes down that messages go that way.
    pub fn note(&self, way: Way, messages: &[Message]) {
        let sign = match way {
            Way::Out => '>',
            Way::In => '<',
        };
        let mut lines = String::new();
        for message in messages {
            let id = message.metadata.message_id.as_uuid().simple();
            lines.push_str(&format!("{sign}{id}\n"));
        }
        let file = File::options().create(true).append(true).open(&self.0);
        let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
        written.expect("the folder takes a file");
    }

    /// Reads all that was written so far.
    pub fn read(&self) -> Traffic {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let (mut out, mut came) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            let (times, id) = match line.split_at_checked(1) {
                Some((">", id)) => (&mut out, id),
                Some(("<", id)) => (&mut came, id),
                _ => continue,
            };
            *times.entry(id.to_owned()).or_insert(0_u64) += 1;
        }
        let again = |times: &BTreeMap<String, u64>| times.values().map(|times| times - 1).sum();
        Traffic {
            offered_again: again(&out),
            came_again: again(&came),
            offered: out.into_keys().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_twice_is_told_by_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let wire = Wire::at(folder.path().join("wire"));
        assert!(wire.read().offered.is_empty());
        let rang = crate::bank::BellRang { times: 1 };
        let messages = [1, 2].map(|n| crate::message(&rang, "bell", n));
        wire.note(Way::Out, &messages);
        wire.note(Way::Out, &messages[..1]);
        wire.note(Way::In, &messages);
        let traffic = wire.read();
        assert_eq!(traffic.offered.len(), 2);
        assert_eq!((traffic.offered_again, traffic.came_again), (1, 0));
    }
}
