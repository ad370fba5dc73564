//! An aggregate that passed all checks.

use syn::{Ident, Type};

use crate::item::Column;

/// Everything that its code is made of.
pub(super) struct Aggregate {
    pub(super) ident: Ident,
    pub(super) type_name: String,
    pub(super) events: Vec<Type>,
    pub(super) id: Column,
    pub(super) root: Ident,
    pub(super) persistence: Persistence,
}

/// Who maps the aggregate to tables.
pub(super) enum Persistence {
    /// The user does.
    Custom,
    Mapped {
        table: String,
        version_column: String,
        /// The columns but those of id and version, in the order of the fields.
        others: Vec<Column>,
        /// Fields that are not stored and start with their default.
        skipped: Vec<(Ident, Type)>,
    },
}
