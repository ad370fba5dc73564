//! A stored field and the columns it takes.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Ident, LitStr, Type};

use crate::attribute::Arguments;
use crate::diagnostics::Diagnostics;

use super::{check_identifier, unraw};

/// A field that is stored in columns of its own.
pub(crate) struct Column {
    pub(crate) field: Ident,
    pub(crate) ty: Type,
    /// The column's name; for an embedded value object the prefix of its columns' names.
    pub(crate) name: String,
    /// Where the name was written: the literal, or the field that it follows from.
    pub(crate) named_by: TokenStream,
    pub(crate) kind: ColumnKind,
}

/// How a field's value becomes columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// One column that sqlx encodes.
    Plain,
    /// One column of JSON.
    Json,
    /// The columns of a value object.
    Embedded,
}

impl Column {
    /// Reads `json`, `embed`, `column = "..."` and `prefix = "..."`.
    pub(crate) fn read(
        field: Ident,
        ty: Type,
        arguments: &Arguments,
        diagnostics: &Diagnostics,
    ) -> Self {
        let json = arguments.flag("json", diagnostics);
        let embed = arguments.flag("embed", diagnostics);
        if let (Some(_), Some(embed)) = (json, embed) {
            diagnostics.error(
                embed,
                "`json` and `embed` exclude each other: keep `json` for one column, `embed` for a column per part",
            );
        }
        let kind = match (json, embed) {
            (_, Some(_)) => ColumnKind::Embedded,
            (Some(_), None) => ColumnKind::Json,
            (None, None) => ColumnKind::Plain,
        };
        let column = named(arguments, "column", diagnostics);
        let prefix = named(arguments, "prefix", diagnostics);
        let (literal, default) = if kind == ColumnKind::Embedded {
            if let Some(column) = column {
                diagnostics.error(
                    column,
                    "an embedded value object has several columns: write `prefix = \"price_\"` instead",
                );
            }
            (prefix, format!("{}_", unraw(&field)))
        } else {
            if let Some(prefix) = prefix {
                diagnostics.error(
                    prefix,
                    "`prefix` needs `embed` beside it; to rename one column write `column = \"...\"`",
                );
            }
            (column, unraw(&field))
        };
        let name = literal.as_ref().map_or(default, LitStr::value);
        let named_by = match &literal {
            Some(literal) => literal.to_token_stream(),
            None => field.to_token_stream(),
        };
        // A prefix may be empty; whatever else is written must be an identifier.
        if !(kind == ColumnKind::Embedded && name.is_empty()) {
            let what = match kind {
                ColumnKind::Embedded => "column prefix",
                ColumnKind::Plain | ColumnKind::Json => "column",
            };
            if let Err(message) = check_identifier(&name, what) {
                diagnostics.error(&named_by, message);
            }
        }
        Self {
            field,
            ty,
            name,
            named_by,
            kind,
        }
    }
}

/// Refuses two fields with one column. The columns of embedded value objects are not known here;
/// the runtime compares them at startup.
pub(crate) fn check_distinct<'a>(
    columns: impl IntoIterator<Item = &'a Column>,
    diagnostics: &Diagnostics,
) {
    let mut seen: Vec<(String, ColumnKind, &Ident)> = Vec::new();
    for column in columns {
        let name = column.name.to_ascii_lowercase();
        let kin = |kind: ColumnKind| kind == ColumnKind::Embedded;
        let twin = seen
            .iter()
            .find(|(other, kind, _)| *other == name && kin(*kind) == kin(column.kind));
        match twin {
            Some((_, ColumnKind::Embedded, field)) => diagnostics.error(
                &column.named_by,
                format!(
                    "the columns of `{}` would get the prefix of those of `{field}`; give one of them another: `prefix = \"...\"`",
                    column.field
                ),
            ),
            Some((_, _, field)) => diagnostics.error(
                &column.named_by,
                format!(
                    "the column `{}` is taken by the field `{field}`; give one of them another name: `column = \"...\"`",
                    column.name
                ),
            ),
            None => seen.push((name, column.kind, &column.field)),
        }
    }
}

fn named(arguments: &Arguments, key: &str, diagnostics: &Diagnostics) -> Option<LitStr> {
    arguments.get(key)?.text(diagnostics)
}
