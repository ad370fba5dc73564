//! The domain is pure: no async, no SQL library, no clock.

use super::Breach;
use super::source::{Source, line_of, words};

const IMPURE: [(&str, &str); 8] = [
    ("async", "no async"),
    ("await", "no async"),
    ("tokio", "no async"),
    ("sqlx", "no database"),
    ("SystemTime", "no clock"),
    ("Instant", "no clock"),
    ("now_utc", "no clock"),
    ("now_local", "no clock"),
];

pub(super) fn check(source: &Source) -> Vec<Breach> {
    if source.under("outbox-runtime/src/domain").is_none() {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for (word, rule) in IMPURE {
        breaches.extend(words(&source.code, word).map(|at| Breach {
            line: line_of(&source.code, at),
            message: format!("`{word}` in the domain, which has {rule}"),
        }));
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;

    #[test]
    fn async_database_and_clock_are_breaches() {
        let text = "async fn f() {}\n// sqlx is fine in a comment\nOffsetDateTime::now_utc();\n\
                    impl sqlx::Type for X {}";
        let found = breaches("outbox-runtime/src/domain/a.rs", text);
        assert_eq!(
            found,
            [
                "1: `async` in the domain, which has no async",
                "4: `sqlx` in the domain, which has no database",
                "3: `now_utc` in the domain, which has no clock",
            ]
        );
        let elsewhere = breaches("outbox-runtime/src/relay/a.rs", text);
        assert!(elsewhere.iter().all(|breach| !breach.contains("domain")));
    }
}
