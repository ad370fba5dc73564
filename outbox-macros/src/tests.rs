//! What holds for the expansion of every attribute.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use crate::aggregate::aggregate;
use crate::domain_event::domain_event;
use crate::idempotent_handler::idempotent_handler;
use crate::value_object::value_object;

/// One of each, good and refused, with a runtime of another name.
fn expansions() -> Vec<TokenStream> {
    let path = quote!(crate = "::renamed");
    vec![
        domain_event(
            quote!(version = 2, key = "{id}:{0}", upcast_from = Old, #path),
            quote!(
                pub struct Paid {
                    id: i64,
                }
            ),
        ),
        domain_event(
            quote!(version = 2, key = "{id}", upcast_from = Old, #path),
            quote!(
                pub struct Paid {
                    id: i64,
                }
            ),
        ),
        aggregate(
            quote!(events(Paid), #path),
            quote!(
                pub struct Order {
                    id: i64,
                    #[aggregate(json)]
                    lines: Lines,
                    #[aggregate(embed)]
                    price: Money,
                    #[aggregate(skip)]
                    cache: Cache,
                    root: AggregateRoot,
                }
            ),
        ),
        aggregate(
            quote!(persistence = custom, #path),
            quote!(
                pub struct Order {
                    id: i64,
                    root: AggregateRoot,
                }
            ),
        ),
        aggregate(
            quote!(events(Paid), #path),
            quote!(
                pub struct Order;
            ),
        ),
        value_object(
            quote!(#path),
            quote!(
                pub struct Money {
                    cents: i64,
                }
            ),
        ),
        value_object(
            quote!(#path),
            quote!(
                pub struct Money;
            ),
        ),
        idempotent_handler(
            quote!(key = "{message_id}:{event.id}", versions = 1..=2, #path),
            quote!(
                async fn pay<DB: Shop>(
                    event: Envelope<Paid>,
                    uow: &mut UnitOfWork<'_, DB>,
                    State(limits): State<Limits>,
                ) -> Result<(), Error> {
                }
            ),
        ),
    ]
}

/// The first segments of all paths that start with `::`.
fn roots(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            roots(group.stream(), found);
        }
        let colon = |index: usize| matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
        let continues = index
            .checked_sub(1)
            .is_some_and(|before| match &tokens[before] {
                TokenTree::Ident(_) | TokenTree::Literal(_) => true,
                TokenTree::Punct(punct) => matches!(punct.as_char(), ':' | '>'),
                TokenTree::Group(_) => false,
            });
        if colon(index) && colon(index + 1) && !continues {
            found.push(tokens[index + 2].to_string());
        }
    }
}

#[test]
fn generated_code_names_core_and_the_runtime_only() {
    for expansion in expansions() {
        let mut found = Vec::new();
        roots(expansion.clone(), &mut found);
        assert!(!found.is_empty());
        found.retain(|root| root != "core" && root != "renamed");
        assert_eq!(found, Vec::<String>::new(), "{expansion}");
    }
}

#[test]
fn a_renamed_runtime_is_named_by_its_new_name_alone() {
    for expansion in expansions() {
        let text = expansion.to_string();
        assert!(text.contains("renamed"), "{text}");
        assert!(!text.contains("outbox_runtime"), "{text}");
    }
}

#[test]
fn what_is_refused_keeps_its_item() {
    let expansion = domain_event(
        quote!(),
        quote!(
            pub struct Paid {
                pub id: i64,
            }
        ),
    );
    let text = expansion.to_string();
    assert!(text.contains("compile_error"), "{text}");
    assert!(text.contains("pub struct Paid { pub id : i64"), "{text}");
    assert!(text.contains("DomainEvent for Paid"), "{text}");
}

#[test]
fn what_is_no_rust_is_handed_back() {
    let expansion = aggregate(quote!(), quote!(pub struct Order { id: }));
    let text = expansion.to_string();
    assert!(
        text.contains("compile_error") && text.contains("pub struct Order"),
        "{text}"
    );
}
