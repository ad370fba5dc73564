//! SQL lives only in the folder of the database that speaks it.

use super::Breach;
use super::layers::BACKENDS;
use super::source::{Source, line_of};

const RUNTIME: &str = "outbox-runtime/src";
const STATEMENTS: [&str; 7] = [
    "SELECT ",
    "INSERT INTO",
    "UPDATE ",
    "DELETE FROM",
    "CREATE TABLE",
    "ALTER TABLE",
    "ON CONFLICT",
];

/// Checks the strings of a Rust file.
pub(super) fn check(source: &Source) -> Vec<Breach> {
    if source.under(RUNTIME).is_none() || is_in_its_place(&source.file) {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for statement in STATEMENTS {
        breaches.extend(
            source
                .strings
                .match_indices(statement)
                .map(|(at, _)| Breach {
                    line: line_of(&source.strings, at),
                    message: format!("SQL (`{}`) outside store/<database>/", statement.trim()),
                }),
        );
    }
    breaches
}

/// Checks the place of an SQL file.
pub(super) fn check_file(file: &str) -> Option<Breach> {
    let strays = file.starts_with(RUNTIME) && file.ends_with(".sql") && !is_in_its_place(file);
    let message = "an SQL file outside store/<database>/".to_owned();
    strays.then_some(Breach { line: 1, message })
}

fn is_in_its_place(file: &str) -> bool {
    let databases = BACKENDS.iter().filter(|(port, _)| *port == "store");
    databases
        .flat_map(|(_, databases)| databases.iter())
        .any(|database| file.starts_with(&format!("{RUNTIME}/store/{database}/")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;

    #[test]
    fn sql_stands_in_its_databases_folder() {
        let text = "let sql = \"SELECT 1\";";
        assert_eq!(
            breaches("outbox-runtime/src/store/sqlite/outbox.rs", text),
            [""; 0]
        );
        assert_eq!(
            breaches("outbox-runtime/src/store/postgres/read.sql", "SELECT 1"),
            [""; 0]
        );
        assert_eq!(
            breaches("outbox-runtime/src/relay/read.rs", text),
            ["1: SQL (`SELECT`) outside store/<database>/"]
        );
        assert_eq!(
            breaches("outbox-runtime/src/relay/read.sql", "SELECT 1"),
            ["1: an SQL file outside store/<database>/"]
        );
    }
}
