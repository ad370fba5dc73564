//! The code that writes a column, reads it, and states what its type must be able to do.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::runtime_path::RuntimePath;

use super::{Column, ColumnKind, blame};

impl Column {
    /// The statement that adds the field's value to `arguments`.
    pub(crate) fn bind(&self, runtime: &RuntimePath) -> TokenStream {
        let field = &self.field;
        let span = blame(self.ty.span());
        let runtime = &runtime.at(span);
        match self.kind {
            ColumnKind::Plain => quote_spanned! {span=>
                <__DB as #runtime::Values>::add(arguments, &self.#field)?;
            },
            ColumnKind::Json => quote_spanned! {span=>
                #runtime::add_json::<__DB, _>(arguments, &self.#field)?;
            },
            ColumnKind::Embedded => quote_spanned! {span=>
                #runtime::ValueObjectRow::<__DB>::bind(&self.#field, arguments)?;
            },
        }
    }

    /// The field of a struct literal that takes the next of `columns`.
    pub(crate) fn read_from_row(&self, runtime: &RuntimePath) -> TokenStream {
        let (field, ty) = (&self.field, &self.ty);
        let span = blame(ty.span());
        let runtime = &runtime.at(span);
        let method = match self.kind {
            ColumnKind::Plain => quote_spanned!(span=> value),
            ColumnKind::Json => quote_spanned!(span=> json),
            ColumnKind::Embedded => quote_spanned!(span=> embedded),
        };
        let read = quote_spanned!(span=> #runtime::Columns::#method::<#ty>(columns)?);
        quote!(#field: #read)
    }
}

/// The bounds on a database `DB` so that it can hold the columns, each once.
pub(crate) fn bounds<'a>(
    columns: impl IntoIterator<Item = &'a Column>,
    runtime: &RuntimePath,
) -> TokenStream {
    let mut seen: Vec<String> = Vec::new();
    let mut bounds = TokenStream::new();
    for column in columns {
        let ty = &column.ty;
        let span = blame(ty.span());
        let runtime = &runtime.at(span);
        let bound = match column.kind {
            ColumnKind::Plain => quote_spanned! {span=>
                #ty: #runtime::ColumnValue<__DB>,
            },
            ColumnKind::Embedded => quote_spanned! {span=>
                #ty: #runtime::ValueObjectRow<__DB>,
            },
            // JSON is the same on every database, so a type that can't be JSON is refused here.
            ColumnKind::Json => continue,
        };
        let text = bound.to_token_stream().to_string();
        if !seen.contains(&text) {
            seen.push(text);
            bounds.extend(bound);
        }
    }
    bounds
}
