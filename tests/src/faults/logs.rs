use std::fs;
use std::path::PathBuf;

/// How many lines of a log are told.
const END: usize = 6;

/// What the workers logged, in a folder that goes with this.
pub(super) struct Logs(tempfile::TempDir);

impl Logs {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// The log of a worker and of its successors.
    pub(super) fn of(&self, worker: usize) -> PathBuf {
        self.0.path().join(format!("worker-{worker}.log"))
    }

    /// The file of what went over the wire.
    pub(super) fn of_the_wire(&self) -> PathBuf {
        self.0.path().join("wire")
    }

    /// How many lines hold the text.
    pub(super) fn count(&self, text: &str) -> u64 {
        let of_one = |log: String| log.lines().filter(|line| line.contains(text)).count() as u64;
        self.texts().map(of_one).sum()
    }

    /// The last lines of each.
    pub(super) fn ends(&self) -> String {
        let mut ends = String::new();
        for log in self.texts() {
            let lines: Vec<_> = log.lines().collect();
            for line in &lines[lines.len().saturating_sub(END)..] {
                ends.push_str("\n    ");
                ends.push_str(line);
            }
        }
        ends
    }

    fn texts(&self) -> impl Iterator<Item = String> {
        let files = fs::read_dir(self.0.path()).into_iter().flatten().flatten();
        let files = files.map(|file| file.path());
        let logs = files.filter(|file| file.extension().is_some());
        logs.filter_map(|file| fs::read_to_string(file).ok())
    }
}
