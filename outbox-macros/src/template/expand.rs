//! Code that fills a template.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Index, LitStr, Member};

use crate::item::blame;
use crate::runtime_path::RuntimePath;

use super::{Part, Template};

/// An expression that fills the template: a `Result` of the key's text.
///
/// `value` gives the reference that a placeholder stands for; errors about it are blamed on the
/// template's literal.
pub(crate) fn fill(
    template: &Template,
    literal: &LitStr,
    runtime: &RuntimePath,
    mut value: impl FnMut(&[String]) -> TokenStream,
) -> TokenStream {
    let key = Ident::new("key", Span::mixed_site());
    let steps = template.parts.iter().map(|part| match part {
        Part::Literal(text) => quote!(#key.literal(#text);),
        Part::Placeholder(path) => {
            let value = value(path);
            let span = blame(literal.span());
            let runtime = &runtime.at(span);
            quote::quote_spanned!(span=> #runtime::write_key(&mut #key, #runtime::KeyValue(#value).part());)
        }
    });
    quote! {{
        #[allow(unused_imports)]
        use #runtime::PresentKeyValue as _;
        let mut #key = #runtime::KeyWriter::new();
        #(#steps)*
        #key.finish()
    }}
}

/// `.a.b`, blamed on the template's literal.
pub(crate) fn access(path: &[String], literal: &LitStr) -> TokenStream {
    path.iter()
        .map(|segment| {
            let member = member(segment, literal);
            quote!(.#member)
        })
        .collect()
}

/// A field's name or number, located at the template's literal.
pub(crate) fn member(segment: &str, literal: &LitStr) -> Member {
    let span = Span::call_site().located_at(literal.span());
    if let Ok(index) = segment.parse::<u32>() {
        return Member::Unnamed(Index { index, span });
    }
    // A keyword is a field only as `r#type`.
    let plain = syn::parse_str::<Ident>(segment).is_ok();
    Member::Named(if plain {
        Ident::new(segment, span)
    } else {
        Ident::new_raw(segment, span)
    })
}
