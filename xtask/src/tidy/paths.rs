//! The paths that a file names, made absolute within its crate.

use super::source::{Source, is_name, line_of, words};

/// A path such as `crate::store::sqlite::Store`, without its root.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedPath {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
    /// `path!(...)`.
    pub(super) is_macro: bool,
}

impl NamedPath {
    /// A segment, or the empty string past the end.
    pub(super) fn segment(&self, index: usize) -> &str {
        self.segments.get(index).map_or("", String::as_str)
    }
}

/// All paths that start in this crate (`crate::`, `super::`), from its root.
///
/// `$crate` is left out: what an exported macro names, its caller names.
pub(super) fn of_crate(source: &Source, root: &str) -> Vec<NamedPath> {
    let module = module_of(source.under(root).unwrap_or_default());
    let mut found = rooted(&source.code, "crate", &[]);
    for at in words(&source.code, "super") {
        if is_continued(&source.code, at) {
            continue;
        }
        let mut rest = source.code.get(at..).unwrap_or_default();
        let mut base = module.as_slice();
        while let Some(after) = rest.strip_prefix("super::") {
            rest = after;
            base = base.split_last().map_or(&[], |(_, parent)| parent);
        }
        found.extend(expand(&source.code, rest, base));
    }
    found
}

/// All paths that start with the name of another crate.
pub(super) fn of_dependency(source: &Source, name: &str) -> Vec<NamedPath> {
    rooted(&source.code, name, &[])
}

fn rooted(code: &str, root: &str, base: &[String]) -> Vec<NamedPath> {
    let starts = words(code, root).filter(|at| !is_continued(code, *at));
    starts
        .filter_map(|at| code.get(at + root.len()..)?.strip_prefix("::"))
        .flat_map(|rest| expand(code, rest, base))
        .collect()
}

/// Whether the word at `at` goes on a path or follows `$`.
///
/// A leading `::` before a crate's name is a start all the same.
fn is_continued(code: &str, at: usize) -> bool {
    let before = code.get(..at).unwrap_or_default();
    match before.strip_suffix("::") {
        Some(earlier) => earlier
            .chars()
            .next_back()
            .is_some_and(|last| is_name(last) || last == '>'),
        None => before.ends_with('$'),
    }
}

/// Expands `a::{b, c::D}` at the start of `rest`, a tail of `code`.
fn expand(code: &str, rest: &str, base: &[String]) -> Vec<NamedPath> {
    let mut found = Vec::new();
    Reader { code, rest }.path(base.to_vec(), &mut found);
    found
}

struct Reader<'a> {
    code: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn path(&mut self, mut segments: Vec<String>, found: &mut Vec<NamedPath>) {
        loop {
            let line = line_of(self.code, self.code.len() - self.rest.len());
            if self.eat("{") {
                return self.group(&segments, found);
            }
            let end = self
                .rest
                .find(|next| !is_name(next))
                .unwrap_or(self.rest.len());
            let (name, rest) = self.rest.split_at(end);
            if !name.is_empty() {
                segments.push(name.to_owned());
            }
            self.rest = rest;
            if !name.is_empty() && self.eat("::") {
                continue;
            }
            let is_macro = self.rest.starts_with('!') && !self.rest.starts_with("!=");
            return found.push(NamedPath {
                line,
                segments,
                is_macro,
            });
        }
    }

    fn group(&mut self, segments: &[String], found: &mut Vec<NamedPath>) {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() || self.eat("}") {
                return;
            }
            self.path(segments.to_vec(), found);
            // Past a `*`, an `as name` and the comma.
            let end = self.rest.find([',', '}']).unwrap_or(self.rest.len());
            self.rest = self.rest.get(end..).unwrap_or_default();
            self.eat(",");
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

/// The module of a file: `store/sqlite/mod.rs` is `store::sqlite`.
fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_end_matches(".rs");
    let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
    if segments
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        segments.pop();
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(file: &str, text: &str) -> Vec<String> {
        let source = Source::read(&format!("src/{file}"), text);
        of_crate(&source, "src")
            .iter()
            .map(|path| path.segments.join("::"))
            .collect()
    }

    #[test]
    fn groups_are_expanded() {
        let text = "use crate::{domain::{Event as E, key::*}, store,\n broker::Publisher};";
        assert_eq!(
            paths("relay/mod.rs", text),
            ["domain::Event", "domain::key", "store", "broker::Publisher"]
        );
    }

    #[test]
    fn super_is_resolved_from_the_module_of_the_file() {
        let text = "use super::super::domain::Key; super::error::Error";
        assert_eq!(
            paths("store/sqlite/mod.rs", text),
            ["domain::Key", "store::error::Error"]
        );
        assert_eq!(paths("relay.rs", "super::inbox::X"), ["inbox::X"]);
    }

    #[test]
    fn lines_are_counted_and_other_paths_are_left_alone() {
        let text = "// crate::app\nother::crate::x;\n$crate::y;\n\ncrate::domain::Z(1)";
        let source = Source::read("src/a.rs", text);
        let found = of_crate(&source, "src");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].line, found[0].segment(0), found[0].segment(9)),
            (5, "domain", "")
        );
    }

    #[test]
    fn a_leading_colon_pair_starts_a_path() {
        let source = Source::read("src/a.rs", "fn f(pool: ::sqlx::Sqlite) { my::sqlx::Pg }");
        let found = of_dependency(&source, "sqlx");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].segment(0), "Sqlite");
    }
}
