//! Stubs beside an error, so that the rest of the program is not reported too.
//!
//! A macro that refuses an item still gives it the traits that it would have had; otherwise every
//! use of the item would be an error of its own and bury the one that matters.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Field, Fields, Generics, Ident, Item, Type};

use crate::item::unraw;
use crate::runtime_path::RuntimePath;

/// `DomainEvent` for an item that can carry serde's derives.
pub(crate) fn domain_event(item: &Item, runtime: &RuntimePath) -> TokenStream {
    let (ident, generics) = match item {
        Item::Struct(item) => (&item.ident, &item.generics),
        Item::Enum(item) => (&item.ident, &item.generics),
        _ => return TokenStream::new(),
    };
    let name = unraw(ident);
    let (parameters, arguments, _) = generics.split_for_impl();
    let bounds = (!generics.params.is_empty()).then(|| {
        quote! {
            Self: #runtime::serde::Serialize
                + #runtime::serde::de::DeserializeOwned
                + ::core::marker::Send
                + ::core::marker::Sync
                + 'static,
        }
    });
    let predicates = predicates(generics);
    quote! {
        #[automatically_derived]
        impl #parameters #runtime::DomainEvent for #ident #arguments
        where
            #predicates
            #bounds
        {
            const NAME: &'static ::core::primitive::str = #name;
            const VERSION: ::core::primitive::u32 = 1;
        }
    }
}

/// `Aggregate`, `Raises`, `Persist` and `raise` for a struct.
pub(crate) fn aggregate(item: &Item, events: &[Type], runtime: &RuntimePath) -> TokenStream {
    let (ident, generics, fields) = match item {
        Item::Struct(item) => (&item.ident, &item.generics, Some(&item.fields)),
        Item::Enum(item) => (&item.ident, &item.generics, None),
        _ => return TokenStream::new(),
    };
    if !generics.params.is_empty() {
        return TokenStream::new();
    }
    let id = id_type(fields, runtime);
    quote! {
        #[automatically_derived]
        impl #runtime::Aggregate for #ident {
            type Id = #id;
            const TYPE: &'static ::core::primitive::str = "";

            fn id(&self) -> &Self::Id {
                ::core::unreachable!()
            }

            fn root(&self) -> &#runtime::AggregateRoot {
                ::core::unreachable!()
            }

            fn root_mut(&mut self) -> &mut #runtime::AggregateRoot {
                ::core::unreachable!()
            }
        }

        impl #ident {
            #[allow(dead_code)]
            fn raise<E>(&mut self, _event: E)
            where
                E: #runtime::DomainEvent + #runtime::RaisedBy<Self>,
            {
            }
        }

        #(
            #[automatically_derived]
            impl #runtime::Raises<#events> for #ident {}
        )*

        #[automatically_derived]
        impl<__DB: #runtime::Backend> #runtime::Persist<__DB> for #ident {
            fn load<'a>(
                _: &'a mut <__DB as #runtime::sqlx::Database>::Connection,
                _: &'a [Self::Id],
                _: #runtime::RowLock,
            ) -> #runtime::BoxFuture<
                'a,
                ::core::result::Result<#runtime::Vec<Self>, #runtime::sqlx::Error>,
            > {
                ::core::unreachable!()
            }

            fn table() -> ::core::option::Option<&'static #runtime::TableMapping> {
                ::core::option::Option::None
            }
        }
    }
}

/// `ValueObject` and `ValueObjectRow` for a struct.
pub(crate) fn value_object(item: &Item, runtime: &RuntimePath) -> TokenStream {
    let (ident, generics) = match item {
        Item::Struct(item) => (&item.ident, &item.generics),
        Item::Enum(item) => (&item.ident, &item.generics),
        _ => return TokenStream::new(),
    };
    if !generics.params.is_empty() {
        return TokenStream::new();
    }
    quote! {
        #[automatically_derived]
        impl #runtime::ValueObject for #ident {
            const COLUMNS: &'static [&'static ::core::primitive::str] = &[];
        }

        #[automatically_derived]
        impl<__DB: #runtime::Values> #runtime::ValueObjectRow<__DB> for #ident {
            fn bind(
                &self,
                _: &mut <__DB as #runtime::sqlx::Database>::Arguments,
            ) -> ::core::result::Result<(), #runtime::BoxDynError> {
                ::core::unreachable!()
            }

            fn read(
                _: &<__DB as #runtime::sqlx::Database>::Row,
                _: ::core::primitive::usize,
            ) -> ::core::result::Result<Self, #runtime::sqlx::Error> {
                ::core::unreachable!()
            }
        }
    }
}

/// The type of the field that is most likely meant as the id, so that its users still fit.
fn id_type(fields: Option<&Fields>, runtime: &RuntimePath) -> TokenStream {
    let fields: Vec<&Field> = fields.into_iter().flatten().collect();
    let marked = fields.iter().find(|field| {
        field.attrs.iter().any(|attribute| {
            attribute.path().is_ident("aggregate")
                && attribute
                    .parse_args::<Ident>()
                    .is_ok_and(|mark| mark == "id")
        })
    });
    let named = fields
        .iter()
        .find(|field| field.ident.as_ref().is_some_and(|ident| ident == "id"));
    match marked.or(named) {
        Some(field) => field.ty.to_token_stream(),
        None => quote!(#runtime::String),
    }
}

fn predicates(generics: &Generics) -> TokenStream {
    let Some(clause) = &generics.where_clause else {
        return TokenStream::new();
    };
    clause
        .predicates
        .iter()
        .map(|predicate| quote!(#predicate,))
        .collect()
}
