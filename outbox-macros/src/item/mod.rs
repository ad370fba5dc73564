//! What the attributes have in common about the items they stand on.

mod column;
mod column_code;
mod derives;
mod names;

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Field, Generics, Item, ItemStruct, Meta};

use crate::attribute::{Arguments, Syntax};
use crate::diagnostics::Diagnostics;

pub(crate) use column::{Column, ColumnKind, check_distinct};
pub(crate) use column_code::bounds;
pub(crate) use derives::SerdeDerives;
pub(crate) use names::{check_identifier, check_text, snake_case, unraw};

/// "a struct", "an enum": the item's kind in a sentence.
pub(crate) fn kind(item: &Item) -> &'static str {
    match item {
        Item::Struct(item) => match item.fields {
            syn::Fields::Named(_) => "a struct with named fields",
            syn::Fields::Unnamed(_) => "a tuple struct",
            syn::Fields::Unit => "a struct without fields",
        },
        Item::Enum(_) => "an enum",
        Item::Union(_) => "a union",
        Item::Fn(_) => "a function",
        Item::Trait(_) => "a trait",
        Item::Impl(_) => "an impl block",
        Item::Mod(_) => "a module",
        Item::Type(_) => "a type alias",
        Item::Const(_) => "a constant",
        Item::Static(_) => "a static",
        Item::Use(_) => "a `use`",
        _ => "another item",
    }
}

/// Where to point when the kind of an item is wrong: its keyword and name, not its whole body.
pub(crate) fn head(item: &Item) -> TokenStream {
    use quote::quote;
    match item {
        Item::Struct(item) => {
            let (keyword, name) = (item.struct_token, &item.ident);
            quote!(#keyword #name)
        }
        Item::Enum(item) => {
            let (keyword, name) = (item.enum_token, &item.ident);
            quote!(#keyword #name)
        }
        Item::Union(item) => {
            let (keyword, name) = (item.union_token, &item.ident);
            quote!(#keyword #name)
        }
        Item::Fn(item) => {
            let (keyword, name) = (item.sig.fn_token, &item.sig.ident);
            quote!(#keyword #name)
        }
        Item::Trait(item) => {
            let (keyword, name) = (item.trait_token, &item.ident);
            quote!(#keyword #name)
        }
        Item::Impl(item) => {
            let keyword = item.impl_token;
            quote!(#keyword)
        }
        Item::Mod(item) => {
            let (keyword, name) = (item.mod_token, &item.ident);
            quote!(#keyword #name)
        }
        other => quote!(#other),
    }
}

/// Takes the item if it is a struct with named fields, and refuses it otherwise.
pub(crate) fn named_struct<'a>(
    item: &'a Item,
    attribute: &str,
    diagnostics: &Diagnostics,
) -> Option<&'a ItemStruct> {
    match item {
        Item::Struct(item) if matches!(item.fields, syn::Fields::Named(_)) => Some(item),
        other => {
            diagnostics.error(
                head(other),
                format!(
                    "`#[{attribute}]` goes on a struct with named fields; this is {}",
                    kind(other)
                ),
            );
            None
        }
    }
}

/// Refuses type, lifetime and const parameters.
pub(crate) fn refuse_generics(
    generics: &Generics,
    attribute: &str,
    remedy: &str,
    diagnostics: &Diagnostics,
) {
    if !generics.params.is_empty() {
        diagnostics.error(
            &generics.params,
            format!("`#[{attribute}]` takes no generic item: {remedy}"),
        );
    }
}

/// Reads all `#[attribute(...)]` of a field; one without values is refused.
pub(crate) fn field_arguments(
    field: &Field,
    syntax: &Syntax,
    diagnostics: &Diagnostics,
) -> Arguments {
    let mut arguments = Arguments::default();
    for attribute in &field.attrs {
        if !attribute.path().is_ident(syntax.attribute) {
            continue;
        }
        match &attribute.meta {
            Meta::List(list) if !list.tokens.is_empty() => {
                arguments.extend(list.tokens.clone(), syntax, diagnostics);
            }
            Meta::List(_) | Meta::Path(_) => diagnostics.error(
                attribute,
                format!(
                    "`#[{}]` on a field says nothing without values; {}",
                    syntax.attribute,
                    syntax.known_keys()
                ),
            ),
            Meta::NameValue(_) => diagnostics.error(
                attribute,
                format!("write the values in parentheses; {}", syntax.known_keys()),
            ),
        }
    }
    arguments
}

/// Refuses `#[cfg]` on a field, which an attribute on the item sees before it is evaluated.
pub(crate) fn refuse_conditional(field: &Field, diagnostics: &Diagnostics) {
    for attribute in &field.attrs {
        if attribute.path().is_ident("cfg") {
            diagnostics.error(
                attribute,
                "a field that is stored can't be conditional: the table would differ from build \
                 to build; put the condition on the whole item",
            );
        }
    }
}

/// Removes our own helper attributes, which rustc does not know.
pub(crate) fn strip_fields(item: &mut Item, attribute: &str) {
    let fields: Vec<&mut Field> = match item {
        Item::Struct(item) => item.fields.iter_mut().collect(),
        Item::Enum(item) => {
            for variant in &mut item.variants {
                strip(&mut variant.attrs, attribute);
            }
            item.variants
                .iter_mut()
                .flat_map(|variant| variant.fields.iter_mut())
                .collect()
        }
        Item::Union(item) => item.fields.named.iter_mut().collect(),
        _ => Vec::new(),
    };
    for field in fields {
        strip(&mut field.attrs, attribute);
    }
}

fn strip(attributes: &mut Vec<Attribute>, name: &str) {
    attributes.retain(|attribute| !attribute.path().is_ident(name));
}

/// The span of a user's token for generated code that should be blamed on it: rustc reports an
/// error there, and lints know that a macro wrote it.
pub(crate) fn blame(span: Span) -> Span {
    Span::call_site().located_at(span)
}
