//! What keeps a program from starting.

use std::fmt;

/// Something that keeps a program from starting, with the place in the program's source.
///
/// All problems are reported at once.
#[derive(Clone, PartialEq, Eq)]
pub struct Problem {
    place: Option<(&'static str, u32)>,
    sentence: String,
}

impl Problem {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self {
            place: None,
            sentence: sentence.into(),
        }
    }

    pub(crate) fn at(file: &'static str, line: u32, sentence: impl Into<String>) -> Self {
        Self {
            place: Some((file, line)),
            sentence: sentence.into(),
        }
    }

    /// The file and the line of the item that it is about, where it is about one.
    pub const fn place(&self) -> Option<(&'static str, u32)> {
        self.place
    }

    /// What is wrong and what to do.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }
}

/// `file:line: sentence`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = self.place {
            write!(f, "{file}:{line}: ")?;
        }
        f.write_str(&self.sentence)
    }
}

/// As [`Display`](fmt::Display), since a `main` that returns the error prints it so.
impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A heading and one line for each problem.
pub(crate) fn list(problems: &[Problem]) -> String {
    let mut text = match problems.len() {
        1 => "1 problem keeps this program from starting:".to_owned(),
        n => format!("{n} problems keep this program from starting:"),
    };
    for problem in problems {
        text.push_str(&format!("\n  {problem}"));
    }
    text
}
