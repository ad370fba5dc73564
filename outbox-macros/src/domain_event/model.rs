//! An event that passed all checks.

use proc_macro2::TokenStream;
use syn::{Ident, LitStr, Type};

use crate::template::Template;

/// Everything that its code is made of.
pub(super) struct Event {
    pub(super) ident: Ident,
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) key: Option<EventKey>,
    pub(super) upcast_from: Option<Type>,
}

/// A business key.
pub(super) struct EventKey {
    pub(super) literal: LitStr,
    pub(super) template: Template,
    /// `Self`, or each `Self::Variant` of an enum.
    pub(super) shapes: Vec<TokenStream>,
}
