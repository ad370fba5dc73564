use std::env;
use std::time::Duration;

use super::action::{Action, When};
use super::installed::install;
use super::point::Point;

/// The environment variable that [`install_from_env`] reads.
///
/// It holds rules with commas between them, each `POINT:ACTION` or `POINT:ACTION:WHEN`. A point has
/// its [name](Point::name); an action is `fail`, `panic`, `kill` or `delay=MILLISECONDS`; `WHEN` is
/// a number for that arrival alone, or `every-NUMBER`. Without it, it is each arrival.
pub const VARIABLE: &str = "OUTBOX_FAULT";

/// A rule in [`VARIABLE`] that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "OUTBOX_FAULT: `{rule}` has no known {part}; write POINT:ACTION:WHEN such as \
     `after-publish:kill:37` or `before-ack:fail:every-10`"
)]
#[non_exhaustive]
pub struct ParseFaultError {
    /// The rule.
    pub rule: String,
    /// What of it is wrong: point, action or when.
    pub part: &'static str,
}

/// Installs for the life of the process what [`VARIABLE`] says; nothing if it is not set.
///
/// A program that is to be a test's child calls it before anything else. The runtime itself never
/// reads the variable.
///
/// # Errors
/// [`ParseFaultError`] for the first rule that can't be read; nothing is installed then.
pub fn install_from_env() -> Result<(), ParseFaultError> {
    let text = env::var(VARIABLE).unwrap_or_default();
    for (point, when, action) in parse(&text)? {
        install(point, when, action).forever();
    }
    Ok(())
}

fn parse(text: &str) -> Result<Vec<(Point, When, Action)>, ParseFaultError> {
    let rules = text.split(',').map(str::trim);
    rules
        .filter(|rule| !rule.is_empty())
        .map(|rule| {
            let wrong = |part| ParseFaultError {
                rule: rule.to_owned(),
                part,
            };
            let mut parts = rule.splitn(3, ':');
            let point = parts.next().and_then(point).ok_or_else(|| wrong("point"))?;
            let action = parts
                .next()
                .and_then(action)
                .ok_or_else(|| wrong("action"))?;
            let when = match parts.next() {
                None => When::Every(1),
                Some(text) => when(text).ok_or_else(|| wrong("when"))?,
            };
            Ok((point, when, action))
        })
        .collect()
}

fn point(name: &str) -> Option<Point> {
    Point::ALL.into_iter().find(|point| point.name() == name)
}

fn action(text: &str) -> Option<Action> {
    match (text, text.strip_prefix("delay=")) {
        ("fail", _) => Some(Action::Fail),
        ("panic", _) => Some(Action::Panic),
        ("kill", _) => Some(Action::Kill),
        (_, Some(millis)) => millis
            .parse()
            .ok()
            .map(|millis| Action::Delay(Duration::from_millis(millis))),
        _ => None,
    }
}

fn when(text: &str) -> Option<When> {
    match text.strip_prefix("every-") {
        Some(number) => number.parse().ok().map(When::Every),
        None => text.parse().ok().map(When::Nth),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let rules = "after-publish:kill:37, before-ack:fail:every-10,before-commit:delay=250,";
        let read = parse(rules).map(|rules| format!("{rules:?}"));
        assert_eq!(
            read.as_deref(),
            Ok(
                "[(AfterPublish, Nth(37), Kill), (BeforeAck, Every(10), Fail), \
                 (BeforeCommit, Every(1), Delay(250ms))]"
            )
        );
        assert!(parse("").is_ok_and(|rules| rules.is_empty()));
    }

    #[test]
    fn what_can_not_be_read_is_named() {
        for (rule, part) in [
            ("at-lunch:fail", "point"),
            ("before-ack", "action"),
            ("before-ack:explode:1", "action"),
            ("before-ack:delay=soon", "action"),
            ("before-ack:fail:often", "when"),
        ] {
            let error = parse(rule).unwrap_err();
            assert_eq!((error.rule.as_str(), error.part), (rule, part));
        }
    }
}
