//! The quick start shows the whole program.

use std::path::Path;

/// Whoever types what the chapter shows, from top to bottom, has `examples/quick-start`.
#[test]
fn the_chapter_holds_every_line_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a file");
    let chapter = read("book/src/quick-start.md");
    let shown: Vec<&str> = chapter
        .lines()
        .filter_map(|line| line.strip_prefix("{{#include ../../examples/quick-start/src/main.rs:"))
        .filter_map(|line| line.strip_suffix("}}"))
        .collect();
    let mut parts = Vec::new();
    let mut open = None;
    for line in read("examples/quick-start/src/main.rs").lines() {
        if let Some(part) = line.strip_prefix("// ANCHOR: ") {
            open = Some(part.to_owned());
        } else if line.starts_with("// ANCHOR_END: ") {
            parts.extend(open.take());
        } else if open.is_none() {
            assert!(
                line.is_empty() || line.starts_with("//!"),
                "not shown: {line}"
            );
        }
    }
    assert_eq!(shown, parts);
}

/// Cargo.toml names what the program needs.
#[test]
fn the_chapter_names_every_dependency() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a file");
    let chapter = read("book/src/quick-start.md");
    let manifest = read("examples/quick-start/Cargo.toml");
    let (_, dependencies) = manifest.split_once("[dependencies]").expect("dependencies");
    let (dependencies, _) = dependencies
        .split_once("[dev-dependencies]")
        .expect("an end");
    for line in dependencies.lines().filter(|line| !line.is_empty()) {
        let name = line.split([' ', '.']).next().unwrap_or_default();
        assert!(
            chapter.contains(&format!("\n{name} = ")),
            "{name} is missing"
        );
    }
}
