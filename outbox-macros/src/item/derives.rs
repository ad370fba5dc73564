//! Which of serde's derives the user has written already.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Meta};

use crate::attribute::paths;
use crate::runtime_path::RuntimePath;

/// The derives of serde that are still missing on an item.
pub(crate) struct SerdeDerives {
    serialize: bool,
    deserialize: bool,
    crate_path: bool,
}

impl SerdeDerives {
    /// None are added.
    pub(crate) fn none() -> Self {
        Self {
            serialize: false,
            deserialize: false,
            crate_path: false,
        }
    }

    /// Those that stand in no `#[derive(...)]` of the item.
    pub(crate) fn missing(attributes: &[Attribute]) -> Self {
        let derived = |name: &str| {
            lists(attributes, "derive")
                .flat_map(paths)
                .any(|path| path.segments.last().is_some_and(|last| last.ident == name))
        };
        let (serialize, deserialize) = (!derived("Serialize"), !derived("Deserialize"));
        let crate_path = (serialize || deserialize)
            && !lists(attributes, "serde")
                .any(|tokens| tokens.into_iter().any(|token| token.to_string() == "crate"));
        Self {
            serialize,
            deserialize,
            crate_path,
        }
    }

    /// The attributes to put above the item's own, so that serde's helpers follow their derive.
    pub(crate) fn attributes(&self, runtime: &RuntimePath) -> TokenStream {
        let serialize = self
            .serialize
            .then(|| quote!(#[derive(#runtime::serde::Serialize)]));
        let deserialize = self
            .deserialize
            .then(|| quote!(#[derive(#runtime::serde::Deserialize)]));
        let path = runtime.private_text("serde");
        let crate_path = self.crate_path.then(|| quote!(#[serde(crate = #path)]));
        quote!(#serialize #deserialize #crate_path)
    }
}

fn lists<'a>(attributes: &'a [Attribute], name: &'a str) -> impl Iterator<Item = TokenStream> + 'a {
    attributes
        .iter()
        .filter_map(move |attribute| match &attribute.meta {
            Meta::List(list) if list.path.is_ident(name) => Some(list.tokens.clone()),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use syn::{ItemStruct, parse_quote};

    use super::*;

    fn added(item: &ItemStruct) -> String {
        SerdeDerives::missing(&item.attrs)
            .attributes(&RuntimePath::default())
            .to_string()
    }

    #[test]
    fn both_are_added() {
        let tokens = added(&parse_quote! { #[derive(Debug, Clone)] struct A; });
        assert!(tokens.contains("Serialize") && tokens.contains("Deserialize"));
        assert!(tokens.contains("serde (crate = "));
    }

    #[test]
    fn each_is_looked_for_by_itself() {
        let tokens = added(&parse_quote! { #[derive(Debug, serde::Serialize)] struct A; });
        assert!(!tokens.contains("Serialize)") && tokens.contains("Deserialize"));
    }

    #[test]
    fn nothing_is_added_to_what_is_derived() {
        let tokens = added(&parse_quote! {
            #[derive(Serialize)] #[derive(serde::Deserialize)] struct A;
        });
        assert!(tokens.is_empty());
    }

    #[test]
    fn the_users_path_of_serde_stays() {
        let tokens = added(&parse_quote! { #[serde(crate = "my_serde")] struct A; });
        assert!(!tokens.contains("crate ="));
    }
}
