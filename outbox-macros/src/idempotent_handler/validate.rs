//! Refuses what can't be a handler.

use syn::{Item, LitStr};

use crate::diagnostics::Diagnostics;
use crate::item::{check_text, head, kind, unraw};
use crate::template::Template;

use super::attr::HandlerAttribute;
use super::model::Handler;
use super::signature;

/// The fields of an envelope that a key can name.
pub(super) const ENVELOPE_FIELDS: [&str; 8] = [
    "message_id",
    "correlation_id",
    "causation_id",
    "aggregate_id",
    "aggregate_type",
    "event_type",
    "schema_version",
    "sequence",
];

pub(super) fn validate(
    item: &Item,
    attribute: &HandlerAttribute,
    diagnostics: &Diagnostics,
) -> Option<Handler> {
    if let Some(consumer) = &attribute.consumer {
        check_text(consumer, "the name of a consumer", diagnostics);
    }
    let template = attribute
        .key
        .as_ref()
        .map(|literal| (literal.clone(), key(literal, diagnostics)));
    let Item::Fn(function) = item else {
        diagnostics.error(
            head(item),
            format!(
                "`#[idempotent_handler]` goes on an `async fn`; this is {}",
                kind(item)
            ),
        );
        return None;
    };
    let name = &function.sig.ident;
    if !attribute.key_given {
        diagnostics.error(
            name,
            "a handler needs a key, by which a repeated message is recognised: write \
             `#[idempotent_handler(key = \"{message_id}\")]`, or a key of the business such as \"{event.order_id}:reserve\"",
        );
    }
    let signature = signature::read(&function.sig, diagnostics);
    let (literal, template) = template?;
    Some(Handler {
        ident: name.clone(),
        consumer: attribute
            .consumer
            .as_ref()
            .map_or_else(|| unraw(name), LitStr::value),
        literal,
        template,
        versions: attribute.versions.clone(),
        signature: signature?,
    })
}

fn key(literal: &LitStr, diagnostics: &Diagnostics) -> Template {
    let template = Template::read(literal, "{message_id}", diagnostics);
    for path in template.placeholders() {
        let text = path.join(".");
        match path {
            [first] if ENVELOPE_FIELDS.contains(&first.as_str()) => {}
            [first, _, ..] if first == "event" => {}
            [first] if first == "event" => diagnostics.error(
                literal,
                "`{event}` is the whole event; name one of its fields: `{event.order_id}`",
            ),
            [first, ..] if ENVELOPE_FIELDS.contains(&first.as_str()) => diagnostics.error(
                literal,
                format!("`{{{first}}}` has no fields; write it alone instead of `{{{text}}}`"),
            ),
            _ => diagnostics.error(literal, unknown(&text)),
        }
    }
    template
}

fn unknown(text: &str) -> String {
    let known: Vec<_> = ENVELOPE_FIELDS
        .iter()
        .map(|field| format!("`{{{field}}}`"))
        .collect();
    format!(
        "unknown placeholder `{{{text}}}`; a key is made of {} and fields of the event such as `{{event.{text}}}`",
        known.join(", ")
    )
}
