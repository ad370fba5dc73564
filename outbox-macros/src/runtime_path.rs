//! Where generated code finds the runtime.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::LitStr;

use crate::diagnostics::Diagnostics;

/// The path of the runtime's `__private` module: all that generated code names besides `::core`.
#[derive(Clone)]
pub(crate) struct RuntimePath(TokenStream);

impl RuntimePath {
    /// The path from `crate = "..."`, or the runtime's own name.
    pub(crate) fn resolve(argument: Option<&LitStr>, diagnostics: &Diagnostics) -> Self {
        let Some(literal) = argument else {
            return Self::default();
        };
        match literal.parse_with(syn::Path::parse_mod_style) {
            Ok(path) => Self(path.to_token_stream()),
            Err(_) => {
                diagnostics.error(
                    literal,
                    "`crate` takes the path of the runtime: `crate = \"::my_outbox\"`",
                );
                Self::default()
            }
        }
    }

    /// The same path located at a user's token, which then takes the blame for what is wrong there.
    pub(crate) fn at(&self, span: Span) -> Self {
        let located = |mut token: TokenTree| {
            token.set_span(token.span().located_at(span));
            token
        };
        Self(self.0.clone().into_iter().map(located).collect())
    }

    /// The path as text, for attributes that take it so (`#[serde(crate = "...")]`).
    pub(crate) fn private_text(&self, item: &str) -> String {
        let text = self.0.to_string().replace(' ', "");
        format!("{text}::__private::{item}")
    }
}

impl Default for RuntimePath {
    fn default() -> Self {
        Self(quote!(::outbox_runtime))
    }
}

/// Writes the path of `__private`.
impl ToTokens for RuntimePath {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.to_tokens(tokens);
        let first = self.0.clone().into_iter().next();
        let span = first.map_or_else(Span::call_site, |token| token.span());
        tokens.extend(quote_spanned!(span=> ::__private));
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn the_default_is_absolute() {
        let path = RuntimePath::default();
        assert_eq!(
            path.to_token_stream().to_string(),
            ":: outbox_runtime :: __private"
        );
        assert_eq!(
            path.private_text("serde"),
            "::outbox_runtime::__private::serde"
        );
    }

    #[test]
    fn another_path_is_taken_as_it_stands() {
        let diagnostics = Diagnostics::new();
        let path = RuntimePath::resolve(Some(&parse_quote!("crate::rt")), &diagnostics);
        assert_eq!(path.private_text("serde"), "crate::rt::__private::serde");
        assert!(diagnostics.is_empty());
    }

    #[test]
    fn no_path_is_refused() {
        let diagnostics = Diagnostics::new();
        RuntimePath::resolve(Some(&parse_quote!("a b")), &diagnostics);
        assert_eq!(diagnostics.messages().len(), 1);
    }
}
