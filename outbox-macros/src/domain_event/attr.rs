//! `#[domain_event(version = 1, name = "...", key = "...", upcast_from = Old)]`.

use proc_macro2::TokenStream;
use syn::{Item, LitInt, LitStr, Type};

use crate::attribute::{Arguments, Key, Syntax};
use crate::diagnostics::Diagnostics;
use crate::item::SerdeDerives;
use crate::runtime_path::RuntimePath;

const SYNTAX: Syntax = Syntax {
    attribute: "domain_event",
    keys: &[
        Key {
            name: "version",
            form: "version = 1",
        },
        Key {
            name: "name",
            form: "name = \"order.placed\"",
        },
        Key {
            name: "key",
            form: "key = \"{order_id}:paid\"",
        },
        Key {
            name: "upcast_from",
            form: "upcast_from = OrderPlacedV1",
        },
        Key {
            name: "serde",
            form: "serde = custom",
        },
        Key {
            name: "crate",
            form: "crate = \"::outbox_runtime\"",
        },
    ],
    elsewhere: &[
        (
            "table",
            "events are stored in the outbox, not in a table of their own",
        ),
        (
            "events",
            "write `events(...)` on the aggregate: `#[aggregate(events(OrderPlaced))]`",
        ),
        (
            "consumer",
            "write it on the handler: `#[idempotent_handler(consumer = \"...\")]`",
        ),
    ],
};

/// What the attribute says.
pub(super) struct EventAttribute {
    /// `None` when it is missing or was refused.
    pub(super) version: Option<LitInt>,
    pub(super) version_given: bool,
    pub(super) name: Option<LitStr>,
    pub(super) key: Option<LitStr>,
    pub(super) upcast_from: Option<Type>,
    pub(super) custom_serde: bool,
    pub(super) runtime: RuntimePath,
}

impl EventAttribute {
    pub(super) fn read(tokens: TokenStream, diagnostics: &Diagnostics) -> Self {
        let arguments = Arguments::parse(tokens, &SYNTAX, diagnostics);
        let text = |key: &str| arguments.get(key)?.text(diagnostics);
        let version = arguments.get("version");
        Self {
            version: version.and_then(|argument| argument.version(diagnostics)),
            version_given: version.is_some(),
            name: text("name"),
            key: text("key"),
            upcast_from: arguments
                .get("upcast_from")
                .and_then(|argument| argument.ty(diagnostics)),
            custom_serde: arguments
                .get("serde")
                .is_some_and(|argument| argument.word(&["custom"], diagnostics)),
            runtime: RuntimePath::resolve(text("crate").as_ref(), diagnostics),
        }
    }

    /// The derives of serde that the item still needs.
    pub(super) fn derives(&self, item: &Item) -> SerdeDerives {
        match item {
            _ if self.custom_serde => SerdeDerives::none(),
            Item::Struct(item) => SerdeDerives::missing(&item.attrs),
            Item::Enum(item) => SerdeDerives::missing(&item.attrs),
            _ => SerdeDerives::none(),
        }
    }
}
