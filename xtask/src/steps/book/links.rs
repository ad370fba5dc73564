//! Links from one page of the built book to another, and to headings.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

/// Pages that mdBook makes by itself from the others.
const MADE: [&str; 3] = ["404.html", "print.html", "toc.html"];

/// Finds links whose page or heading does not exist.
pub(super) fn check(pages: &[PathBuf]) -> Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    for page in pages
        .iter()
        .filter(|page| !MADE.iter().any(|made| page.ends_with(made)))
    {
        texts.insert(page.clone(), super::read(page)?);
    }
    let mut faults = Vec::new();
    for (page, text) in &texts {
        for link in attributes(content(text), "href") {
            if let Some(reason) = broken(page, link, &texts) {
                faults.push(format!("{}: link to {link}: {reason}", page.display()));
            }
        }
    }
    Ok(faults)
}

fn broken(page: &Path, link: &str, texts: &BTreeMap<PathBuf, String>) -> Option<&'static str> {
    let elsewhere = ["http:", "https:", "mailto:", "//"];
    if elsewhere.iter().any(|start| link.starts_with(start)) {
        return None;
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        page.to_owned()
    } else {
        flatten(&page.parent().unwrap_or(page).join(file))
    };
    match texts.get(&target) {
        None if target.is_file() => None,
        None => Some("no such page"),
        Some(_) if heading.is_empty() => None,
        Some(text) => {
            let found = attributes(text, "id").any(|id| id == heading);
            (!found).then_some("that page has no such heading")
        }
    }
}

/// What the chapter says, without mdBook's menus.
fn content(page: &str) -> &str {
    let after = page.split_once("<main>").map_or(page, |(_, after)| after);
    after
        .split_once("</main>")
        .map_or(after, |(before, _)| before)
}

/// The values of one attribute; mdBook writes them all in double quotes.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    html.match_indices(&start)
        .filter_map(|(at, found)| html.get(at + found.len()..)?.split('"').next())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Takes out `.` and `..`.
fn flatten(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                flat.pop();
            }
            part => flat.push(part),
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn faults(link: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (
            folder.path().join("a.html"),
            folder.path().join("sub/b.html"),
        );
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(&first, "<main><h1 id=\"top\">A</h1></main>").unwrap();
        let page = format!("<a href=\"menu.html\"></a><main><a href=\"{link}\">x</a></main>");
        fs::write(&second, page).unwrap();
        check(&[first, second]).unwrap()
    }

    #[test]
    fn links_to_pages_and_headings_that_exist_are_fine() {
        for link in [
            "../a.html",
            "../a.html#top",
            "../sub/b.html",
            "https://example.org/x#y",
        ] {
            assert_eq!(faults(link), [""; 0], "{link}");
        }
    }

    #[test]
    fn a_missing_page_or_heading_is_a_fault() {
        assert!(faults("a.html")[0].ends_with("link to a.html: no such page"));
        assert!(faults("../a.html#bottom")[0].ends_with("that page has no such heading"));
        assert!(faults("#nowhere")[0].ends_with("that page has no such heading"));
    }
}
