//! The code around a handler.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::item::{blame, unraw};
use crate::output::register;
use crate::runtime_path::RuntimePath;
use crate::template::{access, fill};

use super::model::{Database, Handler};

pub(super) fn expand(handler: &Handler, runtime: &RuntimePath) -> TokenStream {
    let key = key(handler, runtime);
    let states = states(handler, runtime);
    let call = call(handler, runtime);
    let assertions = assertions(handler, runtime);
    let registration = registration(handler, runtime);
    // The names are ones that a handler has not: inside the block they hide its own.
    quote! {
        const _: () = {
            #key
            #states
            #call
            #assertions
            #registration
        };
    }
}

fn key(handler: &Handler, runtime: &RuntimePath) -> TokenStream {
    let event = &handler.signature.event;
    let reads_event = handler
        .template
        .placeholders()
        .any(|path| path.first().is_some_and(|first| first == "event"));
    let open = reads_event.then(|| {
        let span = blame(event.span());
        let runtime = runtime.at(span);
        quote_spanned!(span=> let event = #runtime::open::<#event>(message)?;)
    });
    let text = fill(
        &handler.template,
        &handler.literal,
        runtime,
        |path| match path.split_first() {
            Some((first, rest)) if first == "event" => {
                let fields = access(rest, &handler.literal);
                quote!(&event.event #fields)
            }
            Some((first, _)) => metadata(first),
            None => TokenStream::new(),
        },
    );
    quote! {
        fn __key(
            message: &#runtime::Message,
        ) -> ::core::result::Result<#runtime::String, #runtime::HandlerError> {
            #open
            let key = #text;
            key.map_err(#runtime::HandlerError::permanent)
        }
    }
}

/// A reference to a field of the envelope.
fn metadata(name: &str) -> TokenStream {
    let of_aggregate = |field: TokenStream| quote!(&message.metadata.aggregate.as_ref().map(|aggregate| &aggregate.#field));
    match name {
        "message_id" => quote!(&message.metadata.message_id),
        "correlation_id" => quote!(&message.metadata.correlation_id),
        "causation_id" => quote!(&message.metadata.causation_id),
        "event_type" => quote!(&message.metadata.event_type),
        "schema_version" => quote!(&message.metadata.schema_version),
        "aggregate_id" => of_aggregate(quote!(aggregate_id)),
        "aggregate_type" => of_aggregate(quote!(aggregate_type)),
        _ => of_aggregate(quote!(sequence)),
    }
}

fn states(handler: &Handler, runtime: &RuntimePath) -> TokenStream {
    let states = handler.signature.states.iter().map(|state| {
        let span = blame(state.span());
        let runtime = &runtime.at(span);
        quote_spanned!(span=> #runtime::StateRequirement::of::<#state>())
    });
    quote! {
        fn __states() -> #runtime::Vec<#runtime::StateRequirement> {
            <#runtime::Vec<_> as ::core::convert::From<_>>::from([#(#states),*])
        }
    }
}

fn call(handler: &Handler, runtime: &RuntimePath) -> TokenStream {
    let Handler {
        ident, signature, ..
    } = handler;
    let event = &signature.event;
    let event_span = blame(event.span());
    let at_event = runtime.at(event_span);
    let open = quote_spanned!(event_span=> #at_event::open::<#event>(__call.message)?);
    let states = signature.states.iter().map(|state| {
        let span = blame(state.span());
        quote_spanned!(span=> __call.states.extract::<#state>()?)
    });
    let (generics, bounds, database) = match &signature.database {
        Database::Concrete(database) => (TokenStream::new(), None, database.to_token_stream()),
        Database::Generic(ident, generics) => (
            generics.params.to_token_stream(),
            generics.where_clause.as_ref(),
            ident.to_token_stream(),
        ),
    };
    let database_span = blame(database.span());
    let at_database = runtime.at(database_span);
    let argument = quote_spanned!(database_span=> #at_database::HandlerCall<'call, #database>);
    // What keeps the future from being `Send` is blamed on the function's name, what is wrong with
    // its error on the type that it returns.
    let function_span = blame(ident.span());
    let output_span = blame(signature.output.span());
    let at_output = runtime.at(output_span);
    let outcome = quote_spanned! {output_span=>
        match __outcome {
            ::core::result::Result::Ok(()) => ::core::result::Result::Ok(()),
            ::core::result::Result::Err(error) => {
                let kind = (&#at_output::KindOf(&error)).failure_kind();
                ::core::result::Result::Err(#at_output::failed(kind, error))
            }
        }
    };
    let at_function = runtime.at(function_span);
    let body = quote_spanned! {function_span=>
        #at_function::Box::pin(async move {
            #[allow(unused_imports)]
            use #runtime::{KindUnknown as _, KindKnown as _};
            let __event = #open;
            let __outcome = #ident(__event, __call.unit_of_work, #(#states),*).await;
            #outcome
        })
    };
    quote! {
        fn __handle<'call, #generics>(
            __call: #argument,
        ) -> #runtime::BoxFuture<'call, ::core::result::Result<(), #runtime::HandlerError>>
        #bounds
        {
            #body
        }
    }
}

/// Refuses a range of versions that the event's type does not read.
fn assertions(handler: &Handler, runtime: &RuntimePath) -> Option<TokenStream> {
    let (versions, tokens) = handler.versions.as_ref()?;
    let event = &handler.signature.event;
    let (start, end) = (versions.start(), versions.end());
    let message = format!(
        "`versions` names one that `{}` does not read: it reads from its `OLDEST_VERSION` to its `VERSION`; narrow the range, or take the event's newer type",
        event.to_token_stream()
    );
    let span = blame(tokens.span());
    let runtime = &runtime.at(span);
    Some(quote_spanned! {span=>
        const _: () = ::core::assert!(
            <#event as #runtime::DomainEvent>::OLDEST_VERSION <= #start
                && #end <= <#event as #runtime::DomainEvent>::VERSION,
            #message
        );
    })
}

fn registration(handler: &Handler, runtime: &RuntimePath) -> TokenStream {
    let Handler {
        ident,
        consumer,
        signature,
        ..
    } = handler;
    let event = &signature.event;
    let name = unraw(ident);
    let versions = match &handler.versions {
        Some((versions, _)) => {
            let (start, end) = (versions.start(), versions.end());
            quote!((#start, #end))
        }
        None => default_versions(event, runtime),
    };
    let span = blame(event.span());
    let at_event = runtime.at(span);
    let event_type = quote_spanned!(span=> <#event as #at_event::DomainEvent>::NAME);
    let entries = match &signature.database {
        Database::Concrete(database) => {
            let span = blame(database.span());
            let runtime = runtime.at(span);
            quote_spanned!(span=> &[&#runtime::HandlerEntry::<#database> { call: __handle }])
        }
        Database::Generic(..) => quote!(#runtime::handler_entries!(__handle)),
    };
    register(
        runtime,
        quote! {
            #runtime::HandlerRegistration {
                consumer: #consumer,
                event_type: #event_type,
                versions: #versions,
                key: __key,
                states: __states,
                entries: #entries,
                function: ::core::concat!(::core::module_path!(), "::", #name),
                file: ::core::file!(),
                line: ::core::line!(),
            }
        },
    )
}

fn default_versions(event: &Type, runtime: &RuntimePath) -> TokenStream {
    let span = blame(event.span());
    let runtime = &runtime.at(span);
    quote_spanned! {span=>
        (
            <#event as #runtime::DomainEvent>::OLDEST_VERSION,
            <#event as #runtime::DomainEvent>::VERSION,
        )
    }
}
