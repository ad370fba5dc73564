//! The code of an event.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::item::{blame, unraw};
use crate::output::register;
use crate::runtime_path::RuntimePath;
use crate::template::{access, fill, member};

use super::model::{Event, EventKey};

pub(super) fn expand(event: &Event, runtime: &RuntimePath) -> TokenStream {
    let Event {
        ident,
        name,
        version,
        ..
    } = event;
    let business_key = event.key.as_ref().map(|key| business_key(key, runtime));
    let upcast = event.upcast_from.as_ref().map(|old| upcast(old, runtime));
    let assertions = event
        .upcast_from
        .as_ref()
        .map(|old| assertions(event, old, runtime));
    let registration = registration(event, runtime);
    quote! {
        #[automatically_derived]
        impl #runtime::DomainEvent for #ident {
            const NAME: &'static ::core::primitive::str = #name;
            const VERSION: ::core::primitive::u32 = #version;
            #upcast
            #business_key
        }
        #assertions
        #registration
    }
}

fn business_key(key: &EventKey, runtime: &RuntimePath) -> TokenStream {
    let fields = first_segments(key);
    let bindings: Vec<Ident> = (0..fields.len())
        .map(|index| Ident::new(&format!("field_{index}"), Span::mixed_site()))
        .collect();
    let members: Vec<_> = fields
        .iter()
        .map(|field| member(field, &key.literal))
        .collect();
    let text = fill(&key.template, &key.literal, runtime, |path| {
        let Some((first, rest)) = path.split_first() else {
            return TokenStream::new();
        };
        let binding = fields
            .iter()
            .zip(&bindings)
            .find(|(field, _)| **field == first)
            .map(|(_, binding)| binding);
        if rest.is_empty() {
            binding.to_token_stream()
        } else {
            let rest = access(rest, &key.literal);
            quote!(&#binding #rest)
        }
    });
    let arms = key
        .shapes
        .iter()
        .map(|shape| quote!(#shape { #(#members: #bindings,)* .. } => #text,));
    quote! {
        fn business_key(&self) -> ::core::result::Result<
            ::core::option::Option<#runtime::String>,
            #runtime::KeyError,
        > {
            let text = match self {
                #(#arms)*
            };
            text.map(::core::option::Option::Some)
        }
    }
}

/// The fields that the template names, each once.
fn first_segments(key: &EventKey) -> Vec<&String> {
    let mut fields: Vec<&String> = Vec::new();
    for first in key.template.placeholders().filter_map(<[String]>::first) {
        if !fields.contains(&first) {
            fields.push(first);
        }
    }
    fields
}

fn upcast(old: &Type, runtime: &RuntimePath) -> TokenStream {
    let span = blame(old.span());
    let runtime = &runtime.at(span);
    let decode = quote_spanned! {span=>
        #runtime::upcast::<#old, Self>(schema_version, payload)
    };
    quote! {
        const OLDEST_VERSION: ::core::primitive::u32 =
            <#old as #runtime::DomainEvent>::OLDEST_VERSION;

        fn decode(
            schema_version: ::core::primitive::u32,
            payload: &::core::primitive::str,
        ) -> ::core::result::Result<Self, #runtime::DecodeError> {
            #decode
        }
    }
}

/// Refuses a gap in the chain of versions and a change of the name, on the older type.
fn assertions(event: &Event, old: &Type, runtime: &RuntimePath) -> TokenStream {
    let Event {
        ident,
        name,
        version,
        ..
    } = event;
    let before = version.saturating_sub(1);
    let old_text = old.to_token_stream().to_string().replace(' ', "");
    let gap = format!(
        "`upcast_from` of version {version} must name the type of version {before}, and `{old_text}` is another; \
         upcast one version at a time"
    );
    let other_name =
        format!("`{old_text}` has another name on the wire; give both types `name = \"{name}\"`");
    let span = blame(old.span());
    let runtime = &runtime.at(span);
    quote_spanned! {span=>
        const _: () = ::core::assert!(
            <#old as #runtime::DomainEvent>::VERSION == #before,
            #gap
        );
        const _: () = ::core::assert!(
            #runtime::str_eq(
                <#old as #runtime::DomainEvent>::NAME,
                <#ident as #runtime::DomainEvent>::NAME,
            ),
            #other_name
        );
    }
}

fn registration(event: &Event, runtime: &RuntimePath) -> TokenStream {
    let Event {
        ident,
        name,
        version,
        ..
    } = event;
    let rust_name = unraw(ident);
    register(
        runtime,
        quote! {
            #runtime::EventRegistration {
                name: #name,
                version: #version,
                rust_type: ::core::concat!(::core::module_path!(), "::", #rust_name),
                file: ::core::file!(),
                line: ::core::line!(),
            }
        },
    )
}
