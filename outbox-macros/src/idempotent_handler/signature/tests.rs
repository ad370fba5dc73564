use syn::{ItemFn, parse_quote};

use super::*;

fn errors(function: ItemFn) -> Vec<String> {
    let diagnostics = Diagnostics::new();
    let signature = read(&function.sig, &diagnostics);
    assert_eq!(signature.is_some(), diagnostics.is_empty());
    diagnostics.messages()
}

#[test]
fn handlers() {
    for function in [
        parse_quote! { async fn f(e: Envelope<A>, u: &mut UnitOfWork<'_, Sqlite>) -> Result<(), E> {} },
        parse_quote! { async fn f<DB: Shop>(e: outbox_runtime::Envelope<a::A>, u: &mut UnitOfWork<'_, DB>) -> anyhow::Result<()> {} },
        parse_quote! { async fn f(Envelope { event, .. }: Envelope<A>, _: &mut UnitOfWork<'_, sqlx::Postgres>, State(a): State<A>, State(b): State<Arc<B>>) -> MyResult {} },
    ] {
        assert_eq!(errors(function), Vec::<String>::new());
    }
}

#[test]
fn all_that_is_wrong_comes_at_once() {
    let errors = errors(parse_quote! {
        fn f<'a, T, const N: usize>(e: A, u: UnitOfWork<'_, Sqlite>, s: Limits) -> bool {}
    });
    for part in [
        "`async fn f`",
        "no lifetime parameters",
        "no generics but one",
        "returns `Result<(), E>`",
        "write `event: Envelope<A>`",
        "take `&mut UnitOfWork<'_, Sqlite>`",
        "write `State(x): State<Limits>`",
    ] {
        assert!(
            errors.iter().any(|error| error.contains(part)),
            "{part}: {errors:#?}"
        );
    }
}

#[test]
fn the_order_of_arguments() {
    let errors = errors(parse_quote! {
        async fn f(u: &mut UnitOfWork<'_, Sqlite>, e: Envelope<A>) -> Result<(), E> {}
    });
    assert_eq!(errors.len(), 1);
    assert!(errors.concat().starts_with("the event comes first"));
}

#[test]
fn types_are_shown_as_users_write_them() {
    let ty: Type = parse_quote!(Vec<a::B<'_, C>>);
    assert_eq!(text(&ty), "Vec<a::B<'_, C>>");
}
