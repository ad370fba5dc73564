//! How an aggregate is stored.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use crate::item::{Column, ColumnKind, blame, bounds};
use crate::runtime_path::RuntimePath;

use super::model::{Aggregate, Persistence};

/// The implementation of `Persist` for every database that can store the columns.
pub(super) fn persist(aggregate: &Aggregate, runtime: &RuntimePath) -> TokenStream {
    let ident = &aggregate.ident;
    let (bounds, body) = match &aggregate.persistence {
        Persistence::Custom => (
            quote!(#ident: #runtime::CustomPersistence<__DB>),
            custom(runtime),
        ),
        Persistence::Mapped { others, .. } => {
            let columns = std::iter::once(&aggregate.id).chain(others);
            (bounds(columns, runtime), mapped(aggregate, runtime))
        }
    };
    quote! {
        #[automatically_derived]
        impl<__DB: #runtime::Backend> #runtime::Persist<__DB> for #ident
        where
            #bounds
        {
            #body
        }
    }
}

fn custom(runtime: &RuntimePath) -> TokenStream {
    quote! {
        fn load<'a>(
            connection: &'a mut <__DB as #runtime::sqlx::Database>::Connection,
            ids: &'a [Self::Id],
            lock: #runtime::RowLock,
        ) -> #runtime::BoxFuture<
            'a,
            ::core::result::Result<#runtime::Vec<Self>, #runtime::sqlx::Error>,
        > {
            #runtime::load_custom::<__DB, Self>(connection, ids, lock)
        }

        fn table() -> ::core::option::Option<&'static #runtime::TableMapping> {
            ::core::option::Option::None
        }

        fn write_now<'a>(
            &'a self,
            change: #runtime::Change,
            expected_version: ::core::primitive::i64,
            connection: &'a mut <__DB as #runtime::sqlx::Database>::Connection,
        ) -> #runtime::BoxFuture<
            'a,
            ::core::result::Result<::core::primitive::bool, #runtime::sqlx::Error>,
        > {
            #runtime::write_custom::<__DB, Self>(self, change, expected_version, connection)
        }
    }
}

fn mapped(aggregate: &Aggregate, runtime: &RuntimePath) -> TokenStream {
    let Persistence::Mapped {
        others, skipped, ..
    } = &aggregate.persistence
    else {
        return TokenStream::new();
    };
    let id = &aggregate.id.field;
    let root = &aggregate.root;
    let binds = others.iter().map(|column| column.bind(runtime));
    let reads = others.iter().map(|column| column.read_from_row(runtime));
    let read_id = aggregate.id.read_from_row(runtime);
    let defaults = skipped.iter().map(|(field, ty)| {
        let span = blame(ty.span());
        let default = quote_spanned!(span=> <#ty as ::core::default::Default>::default());
        quote!(#field: #default)
    });
    quote! {
        fn load<'a>(
            connection: &'a mut <__DB as #runtime::sqlx::Database>::Connection,
            ids: &'a [Self::Id],
            lock: #runtime::RowLock,
        ) -> #runtime::BoxFuture<
            'a,
            ::core::result::Result<#runtime::Vec<Self>, #runtime::sqlx::Error>,
        > {
            #runtime::load_mapped::<__DB, Self>(
                connection,
                Self::__outbox_table(),
                ids,
                lock,
                |id, arguments| <__DB as #runtime::Values>::add(arguments, id),
                |row| {
                    let columns = &mut #runtime::Columns::<__DB>::starting_at(row, 0);
                    ::core::result::Result::Ok(Self {
                        #read_id,
                        #(#reads,)*
                        #root: #runtime::AggregateRoot::at_version(columns.version()?),
                        #(#defaults,)*
                    })
                },
            )
        }

        fn table() -> ::core::option::Option<&'static #runtime::TableMapping> {
            ::core::option::Option::Some(Self::__outbox_table())
        }

        fn bind_id(
            &self,
            arguments: &mut <__DB as #runtime::sqlx::Database>::Arguments,
        ) -> ::core::result::Result<(), #runtime::BoxDynError> {
            <__DB as #runtime::Values>::add(arguments, &self.#id)
        }

        fn bind_others(
            &self,
            arguments: &mut <__DB as #runtime::sqlx::Database>::Arguments,
        ) -> ::core::result::Result<(), #runtime::BoxDynError> {
            #(#binds)*
            ::core::result::Result::Ok(())
        }
    }
}

/// The function behind `Persist::table`, which is the same for every database.
pub(super) fn table(aggregate: &Aggregate, runtime: &RuntimePath) -> TokenStream {
    let Persistence::Mapped {
        table,
        version_column,
        others,
        ..
    } = &aggregate.persistence
    else {
        return TokenStream::new();
    };
    let id_column = &aggregate.id.name;
    let mapping = others.iter().map(mapping);
    quote! {
        #[doc(hidden)]
        fn __outbox_table() -> &'static #runtime::TableMapping {
            static TABLE: #runtime::LazyLock<#runtime::TableMapping> =
                #runtime::LazyLock::new(|| {
                    #runtime::TableMapping::new(#table, #id_column, #version_column)
                        #(#mapping)*
                });
            &TABLE
        }
    }
}

fn mapping(column: &Column) -> TokenStream {
    let (name, ty) = (&column.name, &column.ty);
    match column.kind {
        ColumnKind::Embedded => {
            let span = blame(ty.span());
            quote_spanned!(span=> .embedded::<#ty>(#name))
        }
        ColumnKind::Plain | ColumnKind::Json => quote!(.column(#name)),
    }
}
