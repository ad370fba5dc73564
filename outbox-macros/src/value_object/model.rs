//! A value object that passed all checks.

use syn::Ident;

use crate::item::Column;

/// Everything that its code is made of.
pub(super) struct ValueObject {
    pub(super) ident: Ident,
    pub(super) columns: Vec<Column>,
}
