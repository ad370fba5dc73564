//! `#[idempotent_handler(consumer = "...", key = "...", versions = 1..=2)]`.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::LitStr;

use crate::attribute::{Arguments, Key, Syntax};
use crate::diagnostics::Diagnostics;
use crate::runtime_path::RuntimePath;

const SYNTAX: Syntax = Syntax {
    attribute: "idempotent_handler",
    keys: &[
        Key {
            name: "key",
            form: "key = \"{message_id}\"",
        },
        Key {
            name: "consumer",
            form: "consumer = \"inventory.reserve-stock\"",
        },
        Key {
            name: "versions",
            form: "versions = 1..=2",
        },
        Key {
            name: "crate",
            form: "crate = \"::outbox_runtime\"",
        },
    ],
    elsewhere: &[
        (
            "event",
            "the event is the type in the first argument: `event: Envelope<OrderPaid>`",
        ),
        (
            "version",
            "a handler takes a range: write `versions = 1..=2`",
        ),
        (
            "name",
            "a handler is known by its consumer: write `consumer = \"...\"`",
        ),
        (
            "state",
            "take the state as an argument: `State(limits): State<Limits>`",
        ),
    ],
};

/// What the attribute says.
pub(super) struct HandlerAttribute {
    pub(super) key: Option<LitStr>,
    pub(super) key_given: bool,
    pub(super) consumer: Option<LitStr>,
    /// The range and the tokens to blame for it.
    pub(super) versions: Option<(RangeInclusive<u32>, TokenStream)>,
    pub(super) runtime: RuntimePath,
}

impl HandlerAttribute {
    pub(super) fn read(tokens: TokenStream, diagnostics: &Diagnostics) -> Self {
        let arguments = Arguments::parse(tokens, &SYNTAX, diagnostics);
        let text = |key: &str| arguments.get(key)?.text(diagnostics);
        Self {
            key: text("key"),
            key_given: arguments.get("key").is_some(),
            consumer: text("consumer"),
            versions: arguments.get("versions").and_then(|argument| {
                let versions = argument.versions(diagnostics)?;
                Some((versions, argument.to_token_stream()))
            }),
            runtime: RuntimePath::resolve(text("crate").as_ref(), diagnostics),
        }
    }
}
