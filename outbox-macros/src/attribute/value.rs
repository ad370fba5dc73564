//! The typed values of arguments.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use syn::parse::{Parse, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Lit, LitInt, LitStr, RangeLimits, Token, Type};

use crate::diagnostics::Diagnostics;

use super::{Argument, Value, split_at_commas};

impl Argument {
    /// A text in quotes.
    pub(crate) fn text(&self, diagnostics: &Diagnostics) -> Option<LitStr> {
        self.assigned(diagnostics, "a text in quotes")
    }

    /// A whole number from 1.
    pub(crate) fn version(&self, diagnostics: &Diagnostics) -> Option<LitInt> {
        let literal: LitInt = self.assigned(diagnostics, "a whole number")?;
        version_of(&literal, diagnostics).map(|_| literal)
    }

    /// A type.
    pub(crate) fn ty(&self, diagnostics: &Diagnostics) -> Option<Type> {
        self.assigned(diagnostics, "a type")
    }

    /// One of a few words; anything else is refused.
    pub(crate) fn word(&self, words: &[&str], diagnostics: &Diagnostics) -> bool {
        let word: Option<syn::Ident> = self.assigned(diagnostics, "a word");
        word.is_some_and(|word| {
            let known = words.iter().any(|known| word == known);
            if !known {
                diagnostics.error(&word, format!("write it as `{}`", self.form));
            }
            known
        })
    }

    /// A range of versions, both ends included, or a single version.
    pub(crate) fn versions(&self, diagnostics: &Diagnostics) -> Option<RangeInclusive<u32>> {
        let expression: Expr = self.assigned(diagnostics, "a range of versions")?;
        let refuse = |message: &str| {
            diagnostics.error(&expression, message);
            None
        };
        let range = match &expression {
            Expr::Range(range) => range,
            single => {
                let version = version_of(&self.integer(single, diagnostics)?, diagnostics)?;
                return Some(version..=version);
            }
        };
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            return refuse("a range of versions needs both ends: write `versions = 1..=2`");
        };
        if matches!(range.limits, RangeLimits::HalfOpen(_)) {
            return refuse(
                "a range of versions includes its end: write `..=`, as in `versions = 1..=2`",
            );
        }
        let start = version_of(&self.integer(start, diagnostics)?, diagnostics)?;
        let end = version_of(&self.integer(end, diagnostics)?, diagnostics)?;
        if start > end {
            return refuse(&format!(
                "this range holds no version; write the lower one first: `versions = {end}..={start}`"
            ));
        }
        Some(start..=end)
    }

    /// The types of `key(A, B)`, each judged by itself.
    pub(crate) fn types(&self, diagnostics: &Diagnostics) -> Vec<Type> {
        let Value::List(group) = &self.value else {
            diagnostics.error(self, format!("write it as `{}`", self.form));
            return Vec::new();
        };
        split_at_commas(group.stream())
            .into_iter()
            .filter_map(|tokens| {
                let parsed = syn::parse2::<Type>(tokens.clone());
                if parsed.is_err() {
                    diagnostics.error(tokens, format!("expected a type, as in `{}`", self.form));
                }
                parsed.ok()
            })
            .collect()
    }

    fn assigned<T: Parse>(&self, diagnostics: &Diagnostics, what: &str) -> Option<T> {
        let remedy = || format!("`{}` takes {what}: write `{}`", self.key, self.form);
        match &self.value {
            Value::Assigned(tokens) if !tokens.is_empty() => {
                let parsed = syn::parse2::<T>(tokens.clone());
                if parsed.is_err() {
                    diagnostics.error(tokens, remedy());
                }
                parsed.ok()
            }
            _ => {
                diagnostics.error(self, remedy());
                None
            }
        }
    }

    fn integer(&self, expression: &Expr, diagnostics: &Diagnostics) -> Option<LitInt> {
        if let Expr::Lit(ExprLit {
            lit: Lit::Int(literal),
            ..
        }) = expression
        {
            return Some(literal.clone());
        }
        diagnostics.error(
            expression,
            format!("versions are whole numbers: write `{}`", self.form),
        );
        None
    }
}

/// The number of a version literal, refused unless it is from 1 to the largest `u32`.
fn version_of(literal: &LitInt, diagnostics: &Diagnostics) -> Option<u32> {
    let number = literal.base10_parse::<u32>().ok();
    match number {
        Some(0) => {
            diagnostics.error(
                literal,
                "versions start at 1: write `1` for the first schema",
            );
            None
        }
        Some(number) if literal.suffix().is_empty() || literal.suffix() == "u32" => Some(number),
        _ => {
            diagnostics.error(
                literal,
                "a version is a whole number from 1 to 4294967295, without a suffix",
            );
            None
        }
    }
}

/// The comma-separated items of a list that was written for another macro, such as `derive(A, B)`.
pub(crate) fn paths(tokens: TokenStream) -> Vec<syn::Path> {
    Punctuated::<syn::Path, Token![,]>::parse_terminated
        .parse2(tokens)
        .map(|paths| paths.into_iter().collect())
        .unwrap_or_default()
}
