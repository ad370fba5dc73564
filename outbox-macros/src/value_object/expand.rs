//! The code of a value object.

use proc_macro2::TokenStream;
use quote::quote;

use crate::item::bounds;
use crate::runtime_path::RuntimePath;

use super::model::ValueObject;

pub(super) fn expand(value_object: &ValueObject, runtime: &RuntimePath) -> TokenStream {
    let ValueObject { ident, columns } = value_object;
    let names = columns.iter().map(|column| &column.name);
    let bounds = bounds(columns, runtime);
    let binds = columns.iter().map(|column| column.bind(runtime));
    let reads = columns.iter().map(|column| column.read_from_row(runtime));
    quote! {
        #[automatically_derived]
        impl #runtime::ValueObject for #ident {
            const COLUMNS: &'static [&'static ::core::primitive::str] = &[#(#names),*];
        }

        #[automatically_derived]
        impl<__DB: #runtime::Values> #runtime::ValueObjectRow<__DB> for #ident
        where
            #bounds
        {
            fn bind(
                &self,
                arguments: &mut <__DB as #runtime::sqlx::Database>::Arguments,
            ) -> ::core::result::Result<(), #runtime::BoxDynError> {
                #(#binds)*
                ::core::result::Result::Ok(())
            }

            fn read(
                row: &<__DB as #runtime::sqlx::Database>::Row,
                first: ::core::primitive::usize,
            ) -> ::core::result::Result<Self, #runtime::sqlx::Error> {
                let columns = &mut #runtime::Columns::<__DB>::starting_at(row, first);
                ::core::result::Result::Ok(Self { #(#reads,)* })
            }
        }
    }
}
