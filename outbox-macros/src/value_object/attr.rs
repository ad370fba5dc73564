//! `#[value_object]` on the struct, `#[value_object(json)]` and `column` on its fields.

use proc_macro2::TokenStream;

use crate::attribute::{Arguments, Key, Syntax};
use crate::diagnostics::Diagnostics;
use crate::runtime_path::RuntimePath;

const SYNTAX: Syntax = Syntax {
    attribute: "value_object",
    keys: &[Key {
        name: "crate",
        form: "crate = \"::outbox_runtime\"",
    }],
    elsewhere: &[
        (
            "prefix",
            "write it where the value object is embedded: `#[aggregate(embed, prefix = \"price_\")]`",
        ),
        (
            "table",
            "a value object lives in the table of the aggregate that embeds it",
        ),
        ("json", "write `#[value_object(json)]` on a field"),
        (
            "column",
            "write `#[value_object(column = \"...\")]` on a field",
        ),
    ],
};

pub(super) const FIELD_SYNTAX: Syntax = Syntax {
    attribute: "value_object",
    keys: &[
        Key {
            name: "json",
            form: "json",
        },
        Key {
            name: "column",
            form: "column = \"currency\"",
        },
    ],
    elsewhere: &[
        (
            "embed",
            "a value object inside a value object is stored as JSON: `#[value_object(json)]`",
        ),
        (
            "prefix",
            "write it where the value object is embedded: `#[aggregate(embed, prefix = \"price_\")]`",
        ),
        (
            "skip",
            "a value object is its parts, so all of them are stored",
        ),
        (
            "id",
            "a value object has no identity; what has one is an aggregate",
        ),
    ],
};

/// What the attribute on the struct says.
pub(super) struct ValueObjectAttribute {
    pub(super) runtime: RuntimePath,
}

impl ValueObjectAttribute {
    pub(super) fn read(tokens: TokenStream, diagnostics: &Diagnostics) -> Self {
        let arguments = Arguments::parse(tokens, &SYNTAX, diagnostics);
        let path = arguments
            .get("crate")
            .and_then(|argument| argument.text(diagnostics));
        Self {
            runtime: RuntimePath::resolve(path.as_ref(), diagnostics),
        }
    }
}
