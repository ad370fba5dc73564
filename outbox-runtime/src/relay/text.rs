use std::error::Error;

/// The longest text that is kept of an error.
const LONGEST: usize = 300;

/// An error with its causes in one line for logs and health: bounded, printable, and without the
/// user and password of a URL.
pub(super) fn of_error(error: &(dyn Error + 'static)) -> String {
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
    clean(&text)
}

fn clean(text: &str) -> String {
    let mut words = text.split_whitespace().map(without_credentials);
    let mut line = words.next().unwrap_or_default();
    for word in words {
        line.push(' ');
        line.push_str(&word);
    }
    let mut printable = line.chars().filter(|c| !c.is_control());
    let mut short: String = printable.by_ref().take(LONGEST).collect();
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
            clean("can't reach\n amqp://me:s3cret@broker:5672/x?y=a@b \u{1b}[31m"),
            "can't reach amqp://broker:5672/x?y=a@b [31m"
        );
        assert_eq!(clean("http://host/a@b"), "http://host/a@b");
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let cut = clean(&"é".repeat(1000));
        assert_eq!(cut.chars().count(), LONGEST + 1);
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
