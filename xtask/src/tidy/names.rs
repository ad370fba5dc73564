//! No file names the machine it was written on or a package registry's host.

use super::Breach;

/// Written in two parts, so that this file does not name them either.
const FORBIDDEN: [(&str, &str); 9] = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("crates", ".io"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("npmjs", ".org"),
    ("deb.debian", ".org"),
    ("docker", ".io"),
];

pub(super) fn check(file: &str, text: &str) -> Vec<Breach> {
    // Cargo writes the registry's address into it.
    if file.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (start, end) in FORBIDDEN {
            let name = format!("{start}{end}");
            if stands_alone(line, &name) {
                let message = format!("names `{name}`, which means nothing elsewhere");
                breaches.push(Breach {
                    line: index + 1,
                    message,
                });
            }
        }
    }
    breaches
}

/// Whether the name is there and not the middle of a longer path or word.
fn stands_alone(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(|before| before.is_alphanumeric() || "_-~}".contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_and_hosts_are_breaches() {
        let path = ["see /wo", "rk/main"].concat();
        let host = ["from https://static.crates", ".io/x"].concat();
        assert_eq!(
            check("README.md", &format!("fine\n{path}\n{host}")).len(),
            2
        );
        assert_eq!(check("Cargo.lock", &host), []);
        assert_eq!(
            check(
                "README.md",
                &[
                    "src/frame",
                    "wo",
                    "rk/a and new",
                    path.trim_start_matches("see ")
                ]
                .concat()
            ),
            []
        );
    }
}
