/// The longest operator's name, in bytes.
const OPERATOR_BYTES: usize = 200;
/// The longest reason, in bytes.
const REASON_BYTES: usize = 2_000;

/// Who acts, and why: kept in `outbox_operator_note` with each letter, in the same transaction.
///
/// ```
/// use outbox_runtime::dead_letters::Note;
///
/// let note = Note::new("ada", "the card service is back, see incident 4711")?;
/// assert_eq!(note.operator(), "ada");
/// assert!(Note::new("ada", "  ").is_err());
/// # Ok::<(), outbox_runtime::dead_letters::NoteError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    operator: String,
    reason: String,
}

/// A note can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteError {
    /// A part says nothing.
    #[error("{what} is empty; say who acts, and why")]
    Empty {
        /// Which part.
        what: &'static str,
    },
    /// A part is too long.
    #[error("{what} has {bytes} bytes, and at most {most} are kept; shorten it")]
    TooLong {
        /// Which part.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// A part holds a control character or a line break.
    #[error(
        "{what} holds a control character or a line break; write it on one line, as plain text"
    )]
    Control {
        /// Which part.
        what: &'static str,
    },
}

impl Note {
    /// A note. Spaces around both parts are left out.
    ///
    /// # Errors
    /// [`NoteError`] when the operator has not 1 to 200 bytes or the reason not 1 to 2,000, or one
    /// holds a control character or a line break, Unicode's own among them.
    pub fn new(operator: &str, reason: &str) -> Result<Self, NoteError> {
        Ok(Self {
            operator: check("the operator", operator, OPERATOR_BYTES)?,
            reason: check("the reason", reason, REASON_BYTES)?,
        })
    }

    /// Who.
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

fn check(what: &'static str, text: &str, most: usize) -> Result<String, NoteError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(NoteError::Empty { what });
    }
    // Unicode's own line breaks are no control characters to Rust.
    let breaks_the_line = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if text.chars().any(breaks_the_line) {
        return Err(NoteError::Control { what });
    }
    let bytes = text.len();
    if bytes > most {
        return Err(NoteError::TooLong { what, bytes, most });
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_required_and_bounded() {
        let note = Note::new(" ada ", &"é".repeat(1_000)).unwrap();
        assert_eq!((note.operator(), note.reason().len()), ("ada", 2_000));
        for (operator, reason) in [
            ("", "x"),
            ("x", ""),
            ("x", "\u{a0}"),
            ("x", "a\nb"),
            ("x", "a\u{2028}b"),
            ("a\u{2029}b", "x"),
            ("a\0b", "x"),
            (&*"a".repeat(201), "x"),
            ("x", &*"a".repeat(2_001)),
        ] {
            assert!(
                Note::new(operator, reason).is_err(),
                "{operator:?} {reason:?}"
            );
        }
    }
}
