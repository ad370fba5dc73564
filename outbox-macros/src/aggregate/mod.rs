//! `#[aggregate]`.

mod attr;
mod expand;
mod model;
mod persist;
mod validate;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Item;

use crate::diagnostics::Diagnostics;
use crate::item::strip_fields;
use crate::{fallback, output};

use self::attr::AggregateAttribute;

pub(crate) fn aggregate(arguments: TokenStream, tokens: TokenStream) -> TokenStream {
    let item: Item = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => return output::unreadable(tokens, &error),
    };
    let diagnostics = Diagnostics::new();
    let attribute = AggregateAttribute::read(arguments, &diagnostics);
    let model = validate::validate(&item, &attribute, &diagnostics);
    let mut bare = item.clone();
    strip_fields(&mut bare, "aggregate");
    output::assemble(
        bare.to_token_stream(),
        model,
        diagnostics,
        |aggregate| expand::expand(aggregate, &attribute.runtime),
        || fallback::aggregate(&item, &attribute.events, &attribute.runtime),
    )
}
