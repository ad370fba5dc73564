//! `#[aggregate(table = "...", events(...))]` on the struct, `#[aggregate(id)]` and others on its fields.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{LitStr, Type};

use crate::attribute::{Argument, Arguments, Key, Syntax};
use crate::diagnostics::Diagnostics;
use crate::runtime_path::RuntimePath;

const SYNTAX: Syntax = Syntax {
    attribute: "aggregate",
    keys: &[
        Key {
            name: "table",
            form: "table = \"orders\"",
        },
        Key {
            name: "type_name",
            form: "type_name = \"Order\"",
        },
        Key {
            name: "events",
            form: "events(OrderPlaced, OrderPaid)",
        },
        Key {
            name: "persistence",
            form: "persistence = custom",
        },
        Key {
            name: "crate",
            form: "crate = \"::outbox_runtime\"",
        },
    ],
    elsewhere: &[
        ("id", "write `#[aggregate(id)]` on the field"),
        ("root", "write `#[aggregate(root)]` on the field"),
        ("json", "write `#[aggregate(json)]` on the field"),
        ("skip", "write `#[aggregate(skip)]` on the field"),
        ("embed", "write `#[aggregate(embed)]` on the field"),
        (
            "column",
            "write `#[aggregate(column = \"...\")]` on the field",
        ),
        (
            "prefix",
            "write `#[aggregate(embed, prefix = \"...\")]` on the field",
        ),
        (
            "name",
            "an aggregate's name in envelopes is `type_name = \"...\"`",
        ),
        (
            "version",
            "the version is kept in the field of type `AggregateRoot`",
        ),
    ],
};

pub(super) const FIELD_SYNTAX: Syntax = Syntax {
    attribute: "aggregate",
    keys: &[
        Key {
            name: "id",
            form: "id",
        },
        Key {
            name: "root",
            form: "root",
        },
        Key {
            name: "json",
            form: "json",
        },
        Key {
            name: "embed",
            form: "embed",
        },
        Key {
            name: "skip",
            form: "skip",
        },
        Key {
            name: "column",
            form: "column = \"total_cents\"",
        },
        Key {
            name: "prefix",
            form: "prefix = \"price_\"",
        },
    ],
    elsewhere: &[
        (
            "table",
            "write `#[aggregate(table = \"...\")]` on the struct",
        ),
        (
            "type_name",
            "write `#[aggregate(type_name = \"...\")]` on the struct",
        ),
        ("events", "write `#[aggregate(events(...))]` on the struct"),
        (
            "persistence",
            "write `#[aggregate(persistence = custom)]` on the struct",
        ),
        (
            "crate",
            "write `#[aggregate(crate = \"...\")]` on the struct",
        ),
        ("rename", "a column's name is `column = \"...\"`"),
    ],
};

/// What the attribute on the struct says.
pub(super) struct AggregateAttribute {
    pub(super) table: Option<LitStr>,
    pub(super) type_name: Option<LitStr>,
    pub(super) events: Vec<Type>,
    pub(super) custom: bool,
    pub(super) runtime: RuntimePath,
}

impl AggregateAttribute {
    pub(super) fn read(tokens: TokenStream, diagnostics: &Diagnostics) -> Self {
        let arguments = Arguments::parse(tokens, &SYNTAX, diagnostics);
        let text = |key: &str| arguments.get(key)?.text(diagnostics);
        let custom = arguments
            .get("persistence")
            .is_some_and(|argument| argument.word(&["custom"], diagnostics));
        let table = text("table");
        if let (true, Some(table)) = (custom, &table) {
            diagnostics.error(
                table,
                "`persistence = custom` maps the tables itself; remove `table`",
            );
        }
        Self {
            table,
            type_name: text("type_name"),
            events: arguments
                .get("events")
                .map(|argument| events(argument, diagnostics))
                .unwrap_or_default(),
            custom,
            runtime: RuntimePath::resolve(text("crate").as_ref(), diagnostics),
        }
    }
}

/// The declared events, each once.
fn events(argument: &Argument, diagnostics: &Diagnostics) -> Vec<Type> {
    let mut seen: Vec<String> = Vec::new();
    let mut events = argument.types(diagnostics);
    events.retain(|event| {
        let text = event.to_token_stream().to_string();
        if !matches!(event, Type::Path(_)) {
            diagnostics.error(
                event,
                "an event is a struct or an enum with `#[domain_event]`; name it here",
            );
            return false;
        }
        if seen.contains(&text) {
            diagnostics.error(
                event,
                format!("`{text}` is declared twice; keep one of them"),
            );
            return false;
        }
        seen.push(text);
        true
    });
    events
}
