//! Reads `key`, `key = value` and `key(...)` from an attribute, and refuses what it does not know.
//!
//! An attribute is cut at its commas before anything is parsed, so that one bad argument hides
//! none of the others.

mod suggestion;
mod value;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;

use crate::diagnostics::Diagnostics;

pub(crate) use self::value::paths;

use self::suggestion::closest;

/// A key that an attribute knows.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// How the key is written, as shown to the user.
    pub(crate) form: &'static str,
}

/// The name of an attribute and all that may stand in it.
pub(crate) struct Syntax {
    pub(crate) attribute: &'static str,
    pub(crate) keys: &'static [Key],
    /// Keys that belong elsewhere, each with the sentence that says where.
    pub(crate) elsewhere: &'static [(&'static str, &'static str)],
}

/// The arguments of an attribute whose keys are all known and stand once.
#[derive(Default)]
pub(crate) struct Arguments {
    arguments: Vec<Argument>,
}

/// One argument.
pub(crate) struct Argument {
    pub(crate) key: Ident,
    form: &'static str,
    value: Value,
}

enum Value {
    None,
    Assigned(TokenStream),
    List(Group),
}

impl Arguments {
    /// Reads the tokens between the attribute's parentheses.
    pub(crate) fn parse(tokens: TokenStream, syntax: &Syntax, diagnostics: &Diagnostics) -> Self {
        let mut arguments = Self::default();
        arguments.extend(tokens, syntax, diagnostics);
        arguments
    }

    /// Reads further tokens, for an item that carries the attribute several times.
    pub(crate) fn extend(
        &mut self,
        tokens: TokenStream,
        syntax: &Syntax,
        diagnostics: &Diagnostics,
    ) {
        for part in split_at_commas(tokens) {
            let Some(argument) = Argument::parse(part, syntax, diagnostics) else {
                continue;
            };
            if self.arguments.iter().any(|known| known.key == argument.key) {
                diagnostics.error(
                    &argument.key,
                    format!("`{}` stands here twice; keep one of them", argument.key),
                );
            } else {
                self.arguments.push(argument);
            }
        }
    }

    /// The argument of a key, if it was given.
    pub(crate) fn get(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.key == name)
    }

    /// Whether the key was given; a value on it is an error.
    pub(crate) fn flag(&self, name: &str, diagnostics: &Diagnostics) -> Option<&Ident> {
        let argument = self.get(name)?;
        if !matches!(argument.value, Value::None) {
            diagnostics.error(
                argument,
                format!("`{name}` takes no value: write `{name}` alone"),
            );
        }
        Some(&argument.key)
    }
}

impl Argument {
    fn parse(tokens: TokenStream, syntax: &Syntax, diagnostics: &Diagnostics) -> Option<Self> {
        let mut rest = tokens.clone().into_iter();
        let Some(TokenTree::Ident(key)) = rest.next() else {
            diagnostics.error(&tokens, format!("expected a key; {}", syntax.known_keys()));
            return None;
        };
        let Some(known) = syntax.keys.iter().find(|known| key == known.name) else {
            diagnostics.error(&key, syntax.unknown(&key.to_string()));
            return None;
        };
        let value = match rest.next() {
            None => Value::None,
            Some(TokenTree::Punct(punct)) if punct.as_char() == '=' => {
                Value::Assigned(rest.collect())
            }
            Some(TokenTree::Group(group))
                if group.delimiter() == Delimiter::Parenthesis && rest.next().is_none() =>
            {
                Value::List(group)
            }
            Some(_) => {
                diagnostics.error(&tokens, format!("write it as `{}`", known.form));
                return None;
            }
        };
        Some(Self {
            key,
            form: known.form,
            value,
        })
    }
}

impl ToTokens for Argument {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.key.to_tokens(tokens);
        match &self.value {
            Value::None => {}
            Value::Assigned(value) => value.to_tokens(tokens),
            Value::List(group) => group.to_tokens(tokens),
        }
    }
}

impl Syntax {
    fn unknown(&self, key: &str) -> String {
        if let Some((_, place)) = self.elsewhere.iter().find(|(name, _)| *name == key) {
            return format!("`{key}` does not belong here: {place}");
        }
        let names = self.keys.iter().map(|known| known.name);
        let hint = closest(key, names)
            .map(|name| format!("did you mean `{name}`? "))
            .unwrap_or_default();
        format!("unknown key `{key}`; {hint}{}", self.known_keys())
    }

    /// A sentence with all keys.
    pub(crate) fn known_keys(&self) -> String {
        let forms: Vec<_> = self
            .keys
            .iter()
            .map(|known| format!("`{}`", known.form))
            .collect();
        format!("`#[{}]` knows {}", self.attribute, forms.join(", "))
    }
}

fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in tokens {
        match (&token, parts.last_mut()) {
            (TokenTree::Punct(punct), _) if punct.as_char() == ',' => {
                parts.push(TokenStream::new());
            }
            (_, Some(part)) => part.extend([token]),
            (_, None) => {}
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    const SYNTAX: Syntax = Syntax {
        attribute: "thing",
        keys: &[
            Key {
                name: "version",
                form: "version = 1",
            },
            Key {
                name: "name",
                form: "name = \"...\"",
            },
            Key {
                name: "json",
                form: "json",
            },
            Key {
                name: "events",
                form: "events(A, B)",
            },
        ],
        elsewhere: &[("id", "put `#[thing(id)]` on a field")],
    };

    fn errors(tokens: TokenStream) -> Vec<String> {
        let diagnostics = Diagnostics::new();
        Arguments::parse(tokens, &SYNTAX, &diagnostics);
        diagnostics.messages()
    }

    #[test]
    fn nothing_is_fine() {
        assert!(errors(quote!()).is_empty());
        assert!(errors(quote!(json,)).is_empty());
    }

    #[test]
    fn unknown_keys_name_the_closest_and_all_known_ones() {
        let errors = errors(quote!(verison = 1, id, elephants));
        assert_eq!(errors.len(), 3);
        assert!(errors[0].starts_with(
            "unknown key `verison`; did you mean `version`? `#[thing]` knows `version = 1`,"
        ));
        assert_eq!(
            errors[1],
            "`id` does not belong here: put `#[thing(id)]` on a field"
        );
        assert!(errors[2].starts_with("unknown key `elephants`; `#[thing]` knows"));
    }

    #[test]
    fn each_argument_is_judged_by_itself() {
        let errors = errors(quote!(1, json json, version = 1, version = 2, name::x = "a"));
        assert_eq!(errors.len(), 4);
        assert!(errors[0].starts_with("expected a key"));
        assert_eq!(errors[1], "write it as `json`");
        assert_eq!(errors[2], "`version` stands here twice; keep one of them");
        assert_eq!(errors[3], "write it as `name = \"...\"`");
    }

    #[test]
    fn a_flag_takes_no_value() {
        let diagnostics = Diagnostics::new();
        let arguments = Arguments::parse(quote!(json = true), &SYNTAX, &diagnostics);
        assert!(arguments.flag("json", &diagnostics).is_some());
        assert_eq!(
            diagnostics.messages(),
            ["`json` takes no value: write `json` alone"]
        );
    }
}
