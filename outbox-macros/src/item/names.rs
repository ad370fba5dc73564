//! Names: of columns, tables, events, consumers.

use syn::ext::IdentExt;
use syn::{Ident, LitStr};

use crate::diagnostics::Diagnostics;

/// The longest name of an event, aggregate or consumer, in bytes: what fits an index everywhere.
const MAX_TEXT_BYTES: usize = 200;

/// The longest identifier in SQL, in bytes: PostgreSQL cuts longer ones off.
const MAX_IDENTIFIER_BYTES: usize = 63;

/// An identifier's text without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// `OrderLine` as `order_line`, `HTTPOrder` as `http_order`.
pub(crate) fn snake_case(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| characters.get(index));
        let after = characters.get(index + 1);
        let starts_word = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if starts_word {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}

/// Refuses a text that can't be a name on the wire.
pub(crate) fn check_text(literal: &LitStr, what: &str, diagnostics: &Diagnostics) {
    let text = literal.value();
    if text.trim().is_empty() {
        diagnostics.error(
            literal,
            format!("{what} can't be empty; leave the key out for the default"),
        );
    } else if text.chars().any(char::is_control) {
        diagnostics.error(
            literal,
            format!("{what} can't hold control characters such as line ends and tabs; remove them"),
        );
    } else if text.len() > MAX_TEXT_BYTES {
        diagnostics.error(
            literal,
            format!(
                "{what} is {} bytes long; shorten it to at most {MAX_TEXT_BYTES}, which fits an index on every database",
                text.len()
            ),
        );
    }
}

/// Refuses a text that can't be an identifier in SQL on every database.
pub(crate) fn check_identifier(text: &str, what: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!(
            "a {what} can't be empty; leave the key out for the default"
        ));
    }
    let mut characters = text.chars();
    let starts_well = characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !starts_well || !characters.all(|other| other.is_ascii_alphanumeric() || other == '_') {
        return Err(format!(
            "`{text}` is no {what}: use ASCII letters, digits and `_`, and start with a letter or `_`"
        ));
    }
    if text.len() > MAX_IDENTIFIER_BYTES {
        return Err(format!(
            "this {what} is {} bytes long; shorten it to at most {MAX_IDENTIFIER_BYTES}, as PostgreSQL cuts off the rest",
            text.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn snake_cases() {
        for (name, snake) in [
            ("Order", "order"),
            ("OrderLine", "order_line"),
            ("HTTPOrder", "http_order"),
            ("Order2Go", "order2_go"),
            ("A", "a"),
            ("already_snake", "already_snake"),
        ] {
            assert_eq!(snake_case(name), snake);
        }
    }

    #[test]
    fn texts_that_are_no_names() {
        for (literal, wrong) in [
            (parse_quote!("order.placed"), 0),
            (parse_quote!(""), 1),
            (parse_quote!("  "), 1),
            (parse_quote!("a\nb"), 1),
        ] {
            let diagnostics = Diagnostics::new();
            check_text(&literal, "a name", &diagnostics);
            assert_eq!(diagnostics.messages().len(), wrong, "{}", literal.value());
        }
        let diagnostics = Diagnostics::new();
        let long = LitStr::new(&"x".repeat(201), proc_macro2::Span::call_site());
        check_text(&long, "a name", &diagnostics);
        assert_eq!(diagnostics.messages().len(), 1);
    }

    #[test]
    fn identifiers() {
        assert!(check_identifier("total_cents", "column").is_ok());
        assert!(check_identifier("_x1", "column").is_ok());
        for wrong in ["", "1st", "a b", "a-b", "naïve", "a;drop"] {
            assert!(check_identifier(wrong, "column").is_err(), "{wrong}");
        }
        assert!(check_identifier(&"x".repeat(64), "column").is_err());
    }
}
