//! All processes of a server, for signals that must reach each of them.
//!
//! A process group is not enough: PostgreSQL's and Erlang's children have sessions of their own.
//! Where there is no `/proc`, the group has to do.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stops all of them where they are.
pub(crate) fn freeze(root: Pid) -> BTreeSet<i32> {
    // A parent that is stopped has no more children, so this ends once nothing new is found.
    let mut frozen = BTreeSet::new();
    loop {
        let found: Vec<i32> = of(root)
            .into_iter()
            .filter(|pid| frozen.insert(*pid))
            .collect();
        if found.is_empty() {
            return frozen;
        }
        found.into_iter().for_each(|pid| send(pid, Signal::STOP));
    }
}

/// Lets all of them go on.
pub(crate) fn thaw(root: Pid) {
    for pid in of(root) {
        send(pid, Signal::CONT);
    }
}

/// Kills all of them. The root stays as a zombie until its parent, which is us, takes notice.
pub(crate) fn kill(root: Pid) {
    let all = freeze(root);
    all.iter().for_each(|pid| send(*pid, Signal::KILL));
    let _gone = kill_process_group(root, Signal::KILL);
    // Its port and its shared memory are free only when the last one is gone.
    let since = Instant::now();
    while all.iter().any(|pid| lives(*pid)) && since.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
}

/// The process, its descendants and what else is in its group.
fn of(root: Pid) -> BTreeSet<i32> {
    let root = root.as_raw_nonzero().get();
    let mut all = BTreeSet::from([root]);
    let processes = processes();
    loop {
        let more: Vec<i32> = processes
            .iter()
            .filter(|process| all.contains(&process.parent) || process.group == root)
            .map(|process| process.pid)
            .filter(|pid| !all.contains(pid))
            .collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
}

/// All living processes of this system.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| read(pid, &stat(pid)?))
        .collect()
}

fn stat(pid: i32) -> Option<String> {
    fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()
}

/// Reads `pid (name) state parent group ...`, where the name may hold anything; nothing for a
/// process that is dead.
fn read(pid: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    Some(Process {
        pid,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

fn lives(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| read(pid, &stat).is_some())
}

fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _gone = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_with_a_bracket_does_not_confuse() {
        let process = read(7, "7 (a) b)) S 3 5 7 0").unwrap();
        assert_eq!((process.parent, process.group), (3, 5));
        assert_eq!(read(7, "7 (sleep) Z 3 5 7 0"), None);
    }

    #[test]
    fn children_of_children_are_found_and_killed() {
        let mut child = Command::new("sh")
            // Two more, one of which leads a session of its own.
            .args(["-c", "setsid sleep 600 & sleep 600 & wait"])
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let root = Pid::from_child(&child);
        let since = Instant::now();
        while of(root).len() < 3 && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
        }
        let all = of(root);
        assert!(all.len() >= 3, "{all:?}");
        kill(root);
        assert!(!all.iter().any(|pid| lives(*pid)));
        assert!(!child.wait().unwrap().success());
    }
}
