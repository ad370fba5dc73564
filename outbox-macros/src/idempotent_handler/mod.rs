//! `#[idempotent_handler]`.

mod attr;
mod expand;
mod model;
mod signature;
mod validate;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Item;

use crate::diagnostics::Diagnostics;
use crate::output;

use self::attr::HandlerAttribute;

pub(crate) fn idempotent_handler(arguments: TokenStream, tokens: TokenStream) -> TokenStream {
    let item: Item = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => return output::unreadable(tokens, &error),
    };
    let diagnostics = Diagnostics::new();
    let attribute = HandlerAttribute::read(arguments, &diagnostics);
    let model = validate::validate(&item, &attribute, &diagnostics);
    output::assemble(
        item.to_token_stream(),
        model,
        diagnostics,
        |handler| expand::expand(handler, &attribute.runtime),
        // Nobody names what a handler expands to, so nothing has to stand in for it.
        TokenStream::new,
    )
}
