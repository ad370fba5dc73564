//! Puts together what a macro gives back.

use proc_macro2::TokenStream;
use quote::quote;

use crate::diagnostics::Diagnostics;
use crate::runtime_path::RuntimePath;

/// The item and the code for it, or the item, its errors and stubs that keep further errors away.
pub(crate) fn assemble<M>(
    item: TokenStream,
    model: Option<M>,
    diagnostics: Diagnostics,
    expand: impl FnOnce(&M) -> TokenStream,
    stubs: impl FnOnce() -> TokenStream,
) -> TokenStream {
    match model {
        Some(model) if diagnostics.is_empty() => {
            let generated = expand(&model);
            quote!(#item #generated)
        }
        _ => {
            let errors = diagnostics.into_compile_errors();
            let stubs = stubs();
            quote!(#errors #item #stubs)
        }
    }
}

/// An item that syn can't read: handed back as it is, beside the reason.
pub(crate) fn unreadable(item: TokenStream, error: &syn::Error) -> TokenStream {
    let error = error.to_compile_error();
    quote!(#error #item)
}

/// Enters a value into the runtime's inventory, where `App` finds it at startup.
pub(crate) fn register(runtime: &RuntimePath, registration: TokenStream) -> TokenStream {
    quote! {
        #runtime::inventory::submit! { #registration }
    }
}
