//! The wall clock is read in one place, so that a test can set it.

use super::Breach;
use super::source::{Source, line_of, words};

const RUNTIME: &str = "outbox-runtime/src";
/// The place.
const CLOCK: &str = "clock.rs";

const READINGS: [&str; 4] = ["SystemTime::now", "now_utc", "now_local", "now_v7"];

pub(super) fn check(source: &Source) -> Vec<Breach> {
    let Some(path) = source.under(RUNTIME) else {
        return Vec::new();
    };
    // Only the program, not its tests, has to go by the clock that it was given. The domain has a
    // rule of its own, which allows no clock at all.
    if path == CLOCK || path.ends_with("tests.rs") || path.starts_with("domain/") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for word in READINGS {
        breaches.extend(words(&source.code, word).map(|at| Breach {
            line: line_of(&source.code, at),
            message: format!(
                "`{word}` reads the wall clock: take the database's time, or the outbox's `Clock`"
            ),
        }));
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;

    #[test]
    fn the_wall_clock_is_read_by_the_clock_alone() {
        let text = "fn f() { Uuid::now_v7(); Instant::now(); }";
        let found = breaches("outbox-runtime/src/relay/a.rs", text);
        assert_eq!(
            found,
            ["1: `now_v7` reads the wall clock: take the database's time, or the outbox's `Clock`"]
        );
        assert_eq!(breaches("outbox-runtime/src/clock.rs", text), [""; 0]);
        assert_eq!(breaches("outbox-runtime/src/relay/tests.rs", text), [""; 0]);
        assert_eq!(breaches("tests/src/a.rs", text), [""; 0]);
    }
}
