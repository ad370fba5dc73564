//! Key templates: text with `{placeholders}`, as in `"{order_id}:paid:v1"`.
//!
//! A key must tell apart whatever its values tell apart. The runtime escapes every value so that
//! it consists of `A-Z a-z 0-9 - . _ ~ %`; the template must hold another character between two
//! placeholders, and then a key can be taken apart in one way only.

mod expand;

use std::str::Chars;

use syn::LitStr;

use crate::diagnostics::Diagnostics;

pub(crate) use expand::{access, fill, member};

/// A template that passed all checks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Literal(String),
    /// The path in a placeholder, at its dots: `event.address.city`.
    Placeholder(Vec<String>),
}

impl Template {
    /// Reads a template; what is wrong with it is reported on its literal, and the rest is handed
    /// back so that it can be judged too. `example` is a placeholder that would do.
    pub(crate) fn read(literal: &LitStr, example: &str, diagnostics: &Diagnostics) -> Self {
        let (template, errors) = Self::parse(&literal.value(), example);
        for error in errors {
            diagnostics.error(literal, error);
        }
        template
    }

    fn parse(text: &str, example: &str) -> (Self, Vec<String>) {
        let mut parser = Parser {
            rest: text.chars(),
            literal: String::new(),
            parts: Vec::new(),
            errors: Vec::new(),
        };
        parser.run();
        let Parser {
            parts, mut errors, ..
        } = parser;
        if text.trim().is_empty() {
            errors.push(format!(
                "a key can't be empty; name what makes it unique, such as `{example}`"
            ));
        } else if errors.is_empty() {
            // Braces that do not pair up make what follows from them unreliable.
            errors.extend(check_parts(&parts, example));
        }
        (Self { parts }, errors)
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &[String]> {
        self.parts.iter().filter_map(|part| match part {
            Part::Placeholder(path) => Some(path.as_slice()),
            Part::Literal(_) => None,
        })
    }
}

struct Parser<'a> {
    rest: Chars<'a>,
    literal: String,
    parts: Vec<Part>,
    errors: Vec<String>,
}

impl Parser<'_> {
    fn run(&mut self) {
        while let Some(character) = self.rest.next() {
            match character {
                '{' if self.skip('{') => self.literal.push('{'),
                '}' if self.skip('}') => self.literal.push('}'),
                '{' => self.placeholder(),
                '}' => self.errors.push(
                    "a `}` without its `{`; add the `{`, or write `}}` for a brace in the key"
                        .to_owned(),
                ),
                other => self.literal.push(other),
            }
        }
        self.end_literal();
    }

    fn placeholder(&mut self) {
        self.end_literal();
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                end @ (Some('{') | None) => {
                    self.errors.push(format!(
                        "the `{{` before `{name}` is never closed; add the `}}`, or write `{{{{` for a brace in the key"
                    ));
                    if end.is_none() {
                        return;
                    }
                    // What follows may well be a placeholder of its own.
                    name.clear();
                }
                Some(other) => name.push(other),
            }
        }
        let path: Vec<String> = name.split('.').map(str::to_owned).collect();
        if name.is_empty() {
            self.errors.push(
                "an empty placeholder `{}`; name a field in it, or write `{{}}` for braces in the key".to_owned(),
            );
        } else if path.iter().all(|segment| is_segment(segment)) {
            self.parts.push(Part::Placeholder(path));
        } else {
            self.errors.push(format!(
                "`{{{name}}}` is no placeholder: write a field, or a path of fields joined by dots, without spaces or formatting"
            ));
        }
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.parts
                .push(Part::Literal(std::mem::take(&mut self.literal)));
        }
    }

    fn skip(&mut self, expected: char) -> bool {
        let mut ahead = self.rest.clone();
        let found = ahead.next() == Some(expected);
        if found {
            self.rest = ahead;
        }
        found
    }
}

fn check_parts(parts: &[Part], example: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut before: Option<(&[String], bool)> = None;
    for part in parts {
        match part {
            Part::Literal(text) => {
                if let Some((_, separated)) = &mut before {
                    *separated |= text.chars().any(separates);
                }
            }
            Part::Placeholder(path) => {
                if let Some((previous, false)) = before {
                    errors.push(format!(
                        "nothing separates `{{{}}}` from `{{{}}}`, so that two different pairs of values could \
                         give one key; separate them with `:`",
                        previous.join("."),
                        path.join("."),
                    ));
                }
                before = Some((path, false));
            }
        }
    }
    if before.is_none() {
        errors.push(format!(
            "this key is the same for every message, so that only the first would ever count; \
             add what tells them apart, such as `{example}`"
        ));
    }
    if parts
        .iter()
        .any(|part| matches!(part, Part::Literal(text) if text.chars().any(char::is_control)))
    {
        errors.push(
            "a key can't hold control characters such as line ends and tabs; remove them"
                .to_owned(),
        );
    }
    errors
}

/// Whether no escaped value can hold the character.
fn separates(character: char) -> bool {
    !(character.is_ascii_alphanumeric() || "-._~%".contains(character))
}

/// A field's name or, for a tuple, its number.
fn is_segment(text: &str) -> bool {
    if text.chars().all(|character| character.is_ascii_digit()) {
        return !text.is_empty() && text.len() < 5;
    }
    let is_word = text
        .chars()
        .all(|character| character.is_alphanumeric() || character == '_');
    is_word && is_ident(text)
}

/// Whether it is a name, or a keyword that is one with `r#` before it.
fn is_ident(text: &str) -> bool {
    syn::parse_str::<syn::Ident>(text).is_ok()
        || syn::parse_str::<syn::Ident>(&format!("r#{text}")).is_ok()
}

#[cfg(test)]
mod tests;
