//! A handler that passed all checks.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use syn::{Generics, Ident, LitStr, Type};

use crate::template::Template;

/// Everything that its code is made of.
pub(super) struct Handler {
    pub(super) ident: Ident,
    pub(super) consumer: String,
    pub(super) literal: LitStr,
    pub(super) template: Template,
    pub(super) versions: Option<(RangeInclusive<u32>, TokenStream)>,
    pub(super) signature: Signature,
}

/// What a handler takes.
pub(super) struct Signature {
    /// The event, out of its envelope.
    pub(super) event: Type,
    pub(super) database: Database,
    /// The types inside `State<...>`, in the order of the arguments.
    pub(super) states: Vec<Type>,
    /// What the function returns.
    pub(super) output: Type,
}

/// The database of a handler's unit of work.
pub(super) enum Database {
    Concrete(Box<Type>),
    /// The function's type parameter, with its bounds.
    Generic(Ident, Box<Generics>),
}
