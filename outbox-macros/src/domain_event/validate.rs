//! Refuses what can't be an event.

use quote::{ToTokens, quote};
use syn::{Fields, Generics, Ident, Item, LitStr};

use crate::diagnostics::Diagnostics;
use crate::item::{check_text, head, kind, refuse_generics, unraw};
use crate::template::Template;

use super::attr::EventAttribute;
use super::model::{Event, EventKey};

pub(super) fn validate(
    item: &Item,
    attribute: &EventAttribute,
    diagnostics: &Diagnostics,
) -> Option<Event> {
    let shape = Shape::of(item, diagnostics);
    if let Some(shape) = &shape {
        refuse_generics(
            shape.generics,
            "domain_event",
            "an event has one schema; write a type for each, or make the field an enum",
            diagnostics,
        );
    }
    if !attribute.version_given {
        diagnostics.error(
            shape.as_ref().map_or_else(|| head(item), |shape| shape.ident.to_token_stream()),
            "an event needs its schema version: write `#[domain_event(version = 1)]`, and count it up when the fields change",
        );
    }
    if let Some(name) = &attribute.name {
        check_text(name, "the name of an event", diagnostics);
    }
    let version = attribute
        .version
        .as_ref()
        .and_then(|version| version.base10_parse::<u32>().ok());
    if let (Some(old), Some(1)) = (&attribute.upcast_from, version) {
        diagnostics.error(
            old,
            "version 1 has no older version to upcast from; remove `upcast_from`, or count `version` up",
        );
    }
    let key = attribute
        .key
        .as_ref()
        .and_then(|literal| key(literal, shape.as_ref(), diagnostics));
    let shape = shape?;
    Some(Event {
        name: attribute
            .name
            .as_ref()
            .map_or_else(|| unraw(shape.ident), LitStr::value),
        ident: shape.ident.clone(),
        version: version?,
        key,
        upcast_from: attribute.upcast_from.clone(),
    })
}

/// What structs and enums have in common: one or more sets of fields.
struct Shape<'a> {
    ident: &'a Ident,
    generics: &'a Generics,
    variants: Vec<(Option<&'a Ident>, &'a Fields)>,
}

impl<'a> Shape<'a> {
    fn of(item: &'a Item, diagnostics: &Diagnostics) -> Option<Self> {
        match item {
            Item::Struct(item) => Some(Self {
                ident: &item.ident,
                generics: &item.generics,
                variants: vec![(None, &item.fields)],
            }),
            Item::Enum(item) => Some(Self {
                ident: &item.ident,
                generics: &item.generics,
                variants: item
                    .variants
                    .iter()
                    .map(|variant| (Some(&variant.ident), &variant.fields))
                    .collect(),
            }),
            other => {
                diagnostics.error(
                    head(other),
                    format!(
                        "`#[domain_event]` goes on a struct or an enum; this is {}",
                        kind(other)
                    ),
                );
                None
            }
        }
    }

    /// The fields that every variant has.
    fn common_fields(&self) -> Vec<String> {
        let mut variants = self.variants.iter().map(|(_, fields)| field_names(fields));
        let mut common = variants.next().unwrap_or_default();
        for names in variants {
            common.retain(|name| names.contains(name));
        }
        common
    }
}

fn field_names(fields: &Fields) -> Vec<String> {
    fields
        .members()
        .map(|member| match member {
            syn::Member::Named(ident) => unraw(&ident),
            syn::Member::Unnamed(index) => index.index.to_string(),
        })
        .collect()
}

fn key(literal: &LitStr, shape: Option<&Shape<'_>>, diagnostics: &Diagnostics) -> Option<EventKey> {
    let known = shape.map(Shape::common_fields).unwrap_or_default();
    let example = known.first().map_or("order_id", String::as_str);
    let template = Template::read(literal, &format!("{{{example}}}"), diagnostics);
    let shape = shape?;
    for path in template.placeholders() {
        let Some(first) = path.first() else { continue };
        if !known.contains(first) {
            diagnostics.error(literal, unknown_placeholder(first, &known, shape));
        }
    }
    let shapes = shape
        .variants
        .iter()
        .map(|(variant, _)| match variant {
            Some(variant) => quote!(Self::#variant),
            None => quote!(Self),
        })
        .collect();
    Some(EventKey {
        literal: literal.clone(),
        template,
        shapes,
    })
}

fn unknown_placeholder(name: &str, known: &[String], shape: &Shape<'_>) -> String {
    let is_enum = shape.variants.iter().any(|(variant, _)| variant.is_some());
    let whose = if is_enum {
        "fields that every variant has"
    } else {
        "fields of the event"
    };
    if known.is_empty() {
        return format!(
            "unknown placeholder `{{{name}}}`: `{}` has no {whose} that could make a key; remove `key`",
            shape.ident
        );
    }
    let forms: Vec<_> = known.iter().map(|field| format!("`{{{field}}}`")).collect();
    format!(
        "unknown placeholder `{{{name}}}`; a business key is made of {whose}: {}",
        forms.join(", ")
    )
}
