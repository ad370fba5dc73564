//! The code of an aggregate.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use crate::item::{blame, unraw};
use crate::output::register;
use crate::runtime_path::RuntimePath;

use super::model::{Aggregate, Persistence};
use super::persist::{persist, table};

pub(super) fn expand(aggregate: &Aggregate, runtime: &RuntimePath) -> TokenStream {
    let Aggregate {
        ident,
        type_name,
        root,
        ..
    } = aggregate;
    let (id, id_type) = (&aggregate.id.field, &aggregate.id.ty);
    let raises = aggregate.events.iter().map(|event| {
        let span = blame(event.span());
        let runtime = &runtime.at(span);
        quote_spanned! {span=>
            #[automatically_derived]
            impl #runtime::Raises<#event> for #ident {}
        }
    });
    let table = table(aggregate, runtime);
    let persist = persist(aggregate, runtime);
    let registration = registration(aggregate, runtime);
    quote! {
        #[automatically_derived]
        impl #runtime::Aggregate for #ident {
            type Id = #id_type;
            const TYPE: &'static ::core::primitive::str = #type_name;

            fn id(&self) -> &Self::Id {
                &self.#id
            }

            fn root(&self) -> &#runtime::AggregateRoot {
                &self.#root
            }

            fn root_mut(&mut self) -> &mut #runtime::AggregateRoot {
                &mut self.#root
            }
        }

        impl #ident {
            /// Raises an event: it is stored with the commit that saves this change.
            #[allow(dead_code)]
            fn raise<E>(&mut self, event: E)
            where
                E: #runtime::DomainEvent + #runtime::RaisedBy<Self>,
            {
                #runtime::AggregateRoot::record(&mut self.#root, event);
            }

            #table
        }

        #(#raises)*
        #persist
        #registration
    }
}

/// Makes the table known, so that `App` can compare it with the database before it starts.
fn registration(aggregate: &Aggregate, runtime: &RuntimePath) -> TokenStream {
    let Aggregate {
        ident,
        type_name,
        persistence,
        ..
    } = aggregate;
    if matches!(persistence, Persistence::Custom) {
        return TokenStream::new();
    }
    let rust_name = unraw(ident);
    register(
        runtime,
        quote! {
            #runtime::AggregateRegistration {
                aggregate_type: #type_name,
                table: #ident::__outbox_table,
                rust_type: ::core::concat!(::core::module_path!(), "::", #rust_name),
                file: ::core::file!(),
                line: ::core::line!(),
            }
        },
    )
}
