//! `#[value_object]`.

mod attr;
mod expand;
mod model;
mod validate;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Item;

use crate::diagnostics::Diagnostics;
use crate::item::strip_fields;
use crate::{fallback, output};

use self::attr::ValueObjectAttribute;

pub(crate) fn value_object(arguments: TokenStream, tokens: TokenStream) -> TokenStream {
    let item: Item = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => return output::unreadable(tokens, &error),
    };
    let diagnostics = Diagnostics::new();
    let attribute = ValueObjectAttribute::read(arguments, &diagnostics);
    let model = validate::validate(&item, &diagnostics);
    let mut bare = item.clone();
    strip_fields(&mut bare, "value_object");
    output::assemble(
        bare.to_token_stream(),
        model,
        diagnostics,
        |value_object| expand::expand(value_object, &attribute.runtime),
        || fallback::value_object(&item, &attribute.runtime),
    )
}
