//! Refuses what can't be a value object.

use syn::Item;

use crate::diagnostics::Diagnostics;
use crate::item::{
    Column, check_distinct, field_arguments, named_struct, refuse_conditional, refuse_generics,
};

use super::attr::FIELD_SYNTAX;
use super::model::ValueObject;

pub(super) fn validate(item: &Item, diagnostics: &Diagnostics) -> Option<ValueObject> {
    let item = named_struct(item, "value_object", diagnostics)?;
    refuse_generics(
        &item.generics,
        "value_object",
        "its columns follow from its fields; write a struct for each",
        diagnostics,
    );
    let columns: Vec<Column> = item
        .fields
        .iter()
        .filter_map(|field| {
            refuse_conditional(field, diagnostics);
            let arguments = field_arguments(field, &FIELD_SYNTAX, diagnostics);
            let ident = field.ident.clone()?;
            Some(Column::read(
                ident,
                field.ty.clone(),
                &arguments,
                diagnostics,
            ))
        })
        .collect();
    if columns.is_empty() {
        diagnostics.error(
            &item.ident,
            "a value object without fields has no columns; add a field, or mark the embedding field `#[aggregate(skip)]`",
        );
    }
    check_distinct(&columns, diagnostics);
    Some(ValueObject {
        ident: item.ident.clone(),
        columns,
    })
}
