//! Reads the signature of a handler and refuses every part of it that does not fit.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    FnArg, GenericArgument, GenericParam, PathArguments, PathSegment, ReturnType, Safety, Type,
    TypeParam,
};

use crate::diagnostics::Diagnostics;

use super::model::{Database, Signature};

const EXAMPLE: &str = "async fn reserve(event: Envelope<OrderPaid>, uow: &mut UnitOfWork<'_, Postgres>) -> Result<(), Error>";

pub(super) fn read(signature: &syn::Signature, diagnostics: &Diagnostics) -> Option<Signature> {
    check_qualifiers(signature, diagnostics);
    let parameter = type_parameter(signature, diagnostics);
    let output = output(signature, diagnostics);
    if let Some(receiver) = signature.receiver() {
        diagnostics.error(
            receiver,
            "a handler is a free function, as nobody could give it a `self`; move it out of the impl and \
             take what it needs as `State(...)` arguments",
        );
        return None;
    }
    let arguments: Vec<&Type> = signature
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(argument) => Some(&*argument.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    for argument in &arguments {
        refuse_impl_trait(argument, diagnostics);
    }
    let (event, database, states) = split(signature, &arguments, diagnostics)?;
    let database = database.map(|ty| match parameter {
        Some(parameter) if is_parameter(&ty, parameter) => Database::Generic(
            parameter.ident.clone(),
            Box::new(signature.generics.clone()),
        ),
        _ => Database::Concrete(Box::new(ty)),
    });
    let elsewhere = event.iter().chain(&states).any(|ty| mention(ty, parameter));
    if let (Some(Database::Concrete(ty)), Some(parameter), false) =
        (&database, parameter, elsewhere)
    {
        diagnostics.error(
            &parameter.ident,
            format!(
                "the one type parameter of a handler is its database: use it in `UnitOfWork<'_, {}>` instead of `{}`, or remove it",
                parameter.ident,
                text(ty)
            ),
        );
    }
    for ty in event.iter().chain(&states) {
        refuse_mention(ty, parameter, diagnostics);
    }
    Some(Signature {
        event: event?,
        database: database?,
        states,
        output: output?,
    })
}

fn check_qualifiers(signature: &syn::Signature, diagnostics: &Diagnostics) {
    if signature.asyncness.is_none() {
        diagnostics.error(
            signature.fn_token,
            format!("a handler is async: write `async fn {}`", signature.ident),
        );
    }
    let plain = "a handler is a plain `async fn`; remove this";
    if let Some(token) = &signature.constness {
        diagnostics.error(token, plain);
    }
    if !matches!(signature.safety, Safety::Default) {
        diagnostics.error(&signature.safety, plain);
    }
    if let Some(abi) = &signature.abi {
        diagnostics.error(abi, plain);
    }
    if let Some(variadic) = &signature.variadic {
        diagnostics.error(variadic, plain);
    }
}

/// The one type parameter; others are refused.
fn type_parameter<'a>(
    signature: &'a syn::Signature,
    diagnostics: &Diagnostics,
) -> Option<&'a TypeParam> {
    let mut found = None;
    for parameter in &signature.generics.params {
        match parameter {
            GenericParam::Type(parameter) if found.is_none() => found = Some(parameter),
            GenericParam::Lifetime(lifetime) => diagnostics.error(
                lifetime,
                "a handler has no lifetime parameters; write `&mut UnitOfWork<'_, DB>`",
            ),
            other => diagnostics.error(
                other,
                "a handler has no generics but one type parameter for its database, since nobody \
                 calls it with others; write a handler for each type",
            ),
        }
    }
    found
}

fn output(signature: &syn::Signature, diagnostics: &Diagnostics) -> Option<Type> {
    let remedy = "a handler returns `Result<(), E>`, where `E` is an error type of yours";
    let ReturnType::Type(_, ty) = &signature.output else {
        diagnostics.error(
            &signature.ident,
            format!("{remedy}; add `-> Result<(), E>`"),
        );
        return None;
    };
    let fits = last_segment(ty).is_some_and(|last| {
        last.ident.to_string().ends_with("Result")
            && type_arguments(last)
                .first()
                .is_none_or(|first| matches!(first, Type::Tuple(tuple) if tuple.elems.is_empty()))
    });
    if !fits {
        diagnostics.error(ty, format!("{remedy}; this is `{}`", text(ty)));
        return None;
    }
    Some((**ty).clone())
}

/// The event, the database and the states, each as far as it could be read.
type Split = (Option<Type>, Option<Type>, Vec<Type>);

fn split(
    signature: &syn::Signature,
    arguments: &[&Type],
    diagnostics: &Diagnostics,
) -> Option<Split> {
    let [first, second, rest @ ..] = arguments else {
        let place = match arguments {
            [only] => only.to_token_stream(),
            _ => signature.ident.to_token_stream(),
        };
        diagnostics.error(
            place,
            format!("a handler takes the event and the unit of work: `{EXAMPLE}`"),
        );
        return None;
    };
    if unit_of_work(first).is_some() && envelope(second).is_some() {
        diagnostics.error(
            quote!(#first, #second),
            format!("the event comes first, then the unit of work: `{EXAMPLE}`"),
        );
        return None;
    }
    let event = event(first, diagnostics);
    let database = database(second, diagnostics);
    let states = rest
        .iter()
        .filter_map(|ty| state(ty, diagnostics))
        .collect();
    Some((event, database, states))
}

fn event(ty: &Type, diagnostics: &Diagnostics) -> Option<Type> {
    let event = envelope(ty)
        .map(type_arguments)
        .and_then(|arguments| arguments.into_iter().next());
    match event {
        Some(Type::Infer(_)) | None => {
            let name = match ty {
                Type::Path(_) if envelope(ty).is_none() => text(ty),
                _ => "OrderPaid".to_owned(),
            };
            diagnostics.error(
                ty,
                format!("the first argument is the event in its envelope: write `event: Envelope<{name}>`"),
            );
            None
        }
        event => event,
    }
}

fn database(ty: &Type, diagnostics: &Diagnostics) -> Option<Type> {
    let unit_of_work = unit_of_work(ty);
    let database = unit_of_work
        .map(type_arguments)
        .and_then(|arguments| arguments.into_iter().next());
    let by_mut = matches!(ty, Type::Reference(reference) if reference.mutability.is_some());
    match (database, by_mut) {
        (Some(Type::Infer(_)), _) | (None, _) => {
            diagnostics.error(
                ty,
                "the second argument is the unit of work: write `uow: &mut UnitOfWork<'_, Postgres>`, \
                 or another database of yours",
            );
            None
        }
        (Some(database), false) => {
            diagnostics.error(
                ty,
                format!(
                    "the unit of work stays with the framework, which commits it: take `&mut UnitOfWork<'_, {}>`",
                    text(&database)
                ),
            );
            None
        }
        (database, true) => database,
    }
}

fn state(ty: &Type, diagnostics: &Diagnostics) -> Option<Type> {
    let state = last_segment(ty)
        .filter(|last| last.ident == "State")
        .and_then(|last| type_arguments(last).into_iter().next());
    if state.is_none() {
        let hint = if envelope(ty).is_some() || unit_of_work(ty).is_some() {
            "a handler takes one event and one unit of work; after them".to_owned()
        } else {
            "after the event and the unit of work".to_owned()
        };
        let name =
            if envelope(ty).is_some() || unit_of_work(ty).is_some() || !matches!(ty, Type::Path(_))
            {
                "Limits".to_owned()
            } else {
                text(ty)
            };
        diagnostics.error(
            ty,
            format!("{hint} come states of the application: write `State(x): State<{name}>`"),
        );
    }
    state
}

fn refuse_impl_trait(ty: &Type, diagnostics: &Diagnostics) {
    if mentions(ty.to_token_stream(), "impl") {
        diagnostics.error(
            ty,
            "`impl Trait` hides a type parameter, and nobody calls a handler with a type of their choice; name the type",
        );
    }
}

/// The event and the states are looked up without a database.
fn refuse_mention(ty: &Type, parameter: Option<&TypeParam>, diagnostics: &Diagnostics) {
    if let (Some(parameter), true) = (parameter, mention(ty, parameter)) {
        diagnostics.error(
            ty,
            format!(
                "events and states are found by their type alone, so they can't depend on `{}`; name a concrete type",
                parameter.ident
            ),
        );
    }
}

fn mention(ty: &Type, parameter: Option<&TypeParam>) -> bool {
    parameter.is_some_and(|parameter| mentions(ty.to_token_stream(), &parameter.ident.to_string()))
}

fn mentions(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => mentions(group.stream(), word),
        _ => false,
    })
}

fn is_parameter(ty: &Type, parameter: &TypeParam) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident(&parameter.ident))
}

fn envelope(ty: &Type) -> Option<&PathSegment> {
    last_segment(ty).filter(|last| last.ident == "Envelope")
}

/// The `UnitOfWork<...>` of a type, with or without a reference.
fn unit_of_work(ty: &Type) -> Option<&PathSegment> {
    let ty = match ty {
        Type::Reference(reference) => &*reference.elem,
        other => other,
    };
    last_segment(ty).filter(|last| last.ident == "UnitOfWork")
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

fn type_arguments(segment: &PathSegment) -> Vec<Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return Vec::new();
    };
    arguments
        .args
        .iter()
        .filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty.clone()),
            _ => None,
        })
        .collect()
}

/// A type as a user would write it.
fn text(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    [
        (" :: ", "::"),
        (" < ", "<"),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
    ]
    .into_iter()
    .fold(text, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests;
