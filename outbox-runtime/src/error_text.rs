//! What is said of errors in logs, in the health and beside parked messages: bounded, printable, and
//! without what is nobody's business.

use std::error::Error;

/// The longest text of an error in logs and health, in characters.
const LONGEST: usize = 300;
/// The longest cause that is kept with a parked message, in bytes.
const LONGEST_CAUSE: usize = 2_000;
/// A payload of less, such as `{}`, tells nothing and may be a part of any text.
const SHORTEST_PAYLOAD: usize = 8;

/// An error with its causes in one line for logs and health: bounded, printable, and without the
/// user and password of a URL.
pub(crate) fn of_error(error: &(dyn Error + 'static)) -> String {
    clean(&with_causes(error), LONGEST)
}

/// The same of an error that a message met: without the message's payload, too.
pub(crate) fn of_failure(error: &(dyn Error + 'static), payload: Option<&str>) -> String {
    clean(&without(payload, with_causes(error)), LONGEST)
}

/// A text as it is kept with a parked message: longer, and without the message's payload.
pub(crate) fn cause(text: &str, payload: Option<&str>) -> String {
    let mut clean = clean(&without(payload, text.to_owned()), usize::MAX);
    clean.truncate(clean.floor_char_boundary(LONGEST_CAUSE));
    clean
}

/// The error and its causes, without those that the text holds already.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

fn without(payload: Option<&str>, text: String) -> String {
    match payload.filter(|payload| payload.len() >= SHORTEST_PAYLOAD) {
        Some(payload) => text.replace(payload, "(payload)"),
        None => text,
    }
}

fn clean(text: &str, longest: usize) -> String {
    let mut words = text.split_whitespace().map(without_credentials);
    let mut line = words.next().unwrap_or_default();
    for word in words {
        line.push(' ');
        line.push_str(&word);
    }
    let mut printable = line.chars().filter(|c| !c.is_control());
    let mut short: String = printable.by_ref().take(longest).collect();
    if printable.next().is_some() {
        short.push('…');
    }
    short
}

/// `amqp://user:password@host` becomes `amqp://host`.
fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let authority = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest.get(..authority).and_then(|part| part.rfind('@')) {
        Some(at) => format!("{scheme}://{}", rest.get(at + 1..).unwrap_or_default()),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_control_characters_are_left_out() {
        assert_eq!(
            clean(
                "can't reach\n amqp://me:s3cret@broker:5672/x?y=a@b \u{1b}[31m",
                LONGEST
            ),
            "can't reach amqp://broker:5672/x?y=a@b [31m"
        );
        assert_eq!(clean("http://host/a@b", LONGEST), "http://host/a@b");
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let cut = clean(&"é".repeat(1000), LONGEST);
        assert_eq!(cut.chars().count(), LONGEST + 1);
    }

    #[test]
    fn a_payload_is_left_out_of_what_is_kept() {
        let error = std::io::Error::other("can't send {\"card\":\"4711\"} to the broker");
        let text = with_causes(&error);
        assert_eq!(
            cause(&text, Some("{\"card\":\"4711\"}")),
            "can't send (payload) to the broker"
        );
        assert_eq!(cause(&text, Some("s")), cause(&text, None));
        assert_eq!(
            of_failure(&error, Some("{\"card\":\"4711\"}")),
            "can't send (payload) to the broker"
        );
    }

    #[test]
    fn a_cause_is_bounded_and_on_one_line() {
        assert_eq!(cause("a\nb\u{0}c \u{7f}", None), "a bc ");
        assert_eq!(cause(&"é".repeat(3_000), None).len(), LONGEST_CAUSE);
    }

    #[test]
    fn causes_are_named_once() {
        let error = crate::store::Error::Database {
            doing: "reading",
            source: sqlx::Error::PoolClosed,
        };
        let text = of_error(&error);
        assert!(
            text.starts_with("the database failed while reading: "),
            "{text}"
        );
    }
}
