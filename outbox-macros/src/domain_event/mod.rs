//! `#[domain_event]`.

mod attr;
mod expand;
mod model;
mod validate;

use proc_macro2::TokenStream;
use quote::quote;
use syn::Item;

use crate::diagnostics::Diagnostics;
use crate::{fallback, output};

use self::attr::EventAttribute;

pub(crate) fn domain_event(arguments: TokenStream, tokens: TokenStream) -> TokenStream {
    let item: Item = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => return output::unreadable(tokens, &error),
    };
    let diagnostics = Diagnostics::new();
    let attribute = EventAttribute::read(arguments, &diagnostics);
    let derives = attribute.derives(&item).attributes(&attribute.runtime);
    let model = validate::validate(&item, &attribute, &diagnostics);
    output::assemble(
        quote!(#derives #item),
        model,
        diagnostics,
        |event| expand::expand(event, &attribute.runtime),
        || fallback::domain_event(&item, &attribute.runtime),
    )
}
