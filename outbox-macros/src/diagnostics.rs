//! Gathers an item's errors so that all of them are reported at once.

use std::cell::RefCell;
use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The errors found so far in one item.
///
/// It is shared by reference, so that a parser can report an error and go on with the next part.
#[derive(Default)]
pub(crate) struct Diagnostics {
    errors: RefCell<Vec<syn::Error>>,
}

impl Diagnostics {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Reports an error on the user's `tokens`; the message names the remedy.
    pub(crate) fn error(&self, tokens: impl ToTokens, message: impl Display) {
        let error = syn::Error::new_spanned(tokens, message);
        self.errors.borrow_mut().push(error);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    /// One `compile_error!` for each error.
    pub(crate) fn into_compile_errors(self) -> TokenStream {
        self.errors
            .into_inner()
            .iter()
            .map(syn::Error::to_compile_error)
            .collect()
    }
}

#[cfg(test)]
impl Diagnostics {
    /// What was reported, for tests.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.errors
            .borrow()
            .iter()
            .flat_map(|error| error.clone().into_iter().map(|part| part.to_string()))
            .collect()
    }
}
