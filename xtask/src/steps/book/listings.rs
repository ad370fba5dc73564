//! Listings: every Rust listing is a part of a file that cargo compiles and runs.

use std::fs;
use std::path::Path;

/// Finds includes that lead nowhere and Rust listings that nothing compiles.
pub(super) fn check(chapter: &Path, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut listing: Option<Listing> = None;
    for (index, line) in text.lines().enumerate() {
        let mut fault = |message: String| {
            faults.push(format!("{}:{}: {message}", chapter.display(), index + 1));
        };
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            match listing.take() {
                Some(ended) if ended.is_loose() => fault(
                    "a Rust listing that nothing compiles: include it from an example by anchor, \
                     or mark it `rust,ignore` if it must not compile"
                        .to_owned(),
                ),
                Some(_) => {}
                None => listing = Some(Listing::begin(fence)),
            }
        }
        for include in includes(line) {
            if let Some(listing) = &mut listing {
                listing.includes = true;
            }
            if let Err(message) = resolve(chapter, include) {
                fault(message);
            }
        }
    }
    faults
}

struct Listing {
    rust: bool,
    includes: bool,
}

impl Listing {
    fn begin(fence: &str) -> Self {
        let mut words = fence.split([',', ' ']).map(str::trim);
        let rust = words.next() == Some("rust") && !words.any(|word| word == "ignore");
        Self {
            rust,
            includes: false,
        }
    }

    fn is_loose(&self) -> bool {
        self.rust && !self.includes
    }
}

/// The targets of `{{#include target}}` and its relatives; `\{{` is no include.
fn includes(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("{{#").filter_map(|(at, _)| {
        let escaped = line.get(..at)?.ends_with('\\');
        let (inside, _) = line.get(at + 3..)?.split_once("}}")?;
        let (command, target) = inside.split_once(' ')?;
        let known = ["include", "rustdoc_include", "playground"].contains(&command);
        (known && !escaped)
            .then(|| target.split_whitespace().next())
            .flatten()
    })
}

fn resolve(chapter: &Path, include: &str) -> Result<(), String> {
    let (file, part) = include.split_once(':').unwrap_or((include, ""));
    let path = chapter.parent().unwrap_or(chapter).join(file);
    let text =
        fs::read_to_string(&path).map_err(|error| format!("cannot include {file}: {error}"))?;
    // A part is an anchor or a range of lines; lines shift silently.
    if part.starts_with(|first: char| first.is_ascii_digit() || first == ':') {
        return Err(format!(
            "{include} names lines: name an anchor, which moves with its code"
        ));
    }
    if part.is_empty() {
        return Ok(());
    }
    for mark in ["ANCHOR", "ANCHOR_END"] {
        let wanted = format!("{mark}: {part}");
        let found = text.lines().any(|line| {
            line.trim_end()
                .strip_suffix(&wanted)
                .is_some_and(|before| !before.ends_with('_'))
        });
        if !found {
            return Err(format!("{file} has no line that ends in `{wanted}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let code = "// ANCHOR: whole\nfn whole() {}\n// ANCHOR_END: whole\n// ANCHOR: open\n";
        fs::write(folder.path().join("code.rs"), code).unwrap();
        let chapter = folder.path().join("chapter.md");
        check(&chapter, text)
            .into_iter()
            .map(|fault| fault.replace(&format!("{}:", chapter.display()), ""))
            .collect()
    }

    #[test]
    fn an_include_by_anchor_is_fine() {
        assert_eq!(faults("```rust\n{{#include code.rs:whole}}\n```"), [""; 0]);
        assert_eq!(
            faults("```toml\nany = 1\n```\n```rust,ignore\nno!\n```"),
            [""; 0]
        );
        assert_eq!(
            faults("`\\{{#include nothing.rs}}` is how to include"),
            [""; 0]
        );
    }

    #[test]
    fn an_include_that_leads_nowhere_is_a_fault() {
        assert!(faults("{{#include none.rs}}")[0].starts_with("1: cannot include none.rs"));
        assert!(faults("\n{{#include code.rs:other}}")[0].contains("`ANCHOR: other`"));
        assert!(faults("{{#include code.rs:open}}")[0].contains("`ANCHOR_END: open`"));
        assert!(faults("{{#include code.rs:1:2}}")[0].contains("names lines"));
    }

    #[test]
    fn a_rust_listing_of_its_own_is_a_fault() {
        let faults = faults("```rust\nfn main() {}\n```");
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("3: a Rust listing that nothing compiles"));
    }
}
