//! Concrete backends are named only where everything is joined.

use super::Breach;
use super::layers::BACKENDS;
use super::paths;
use super::source::{Source, line_of, words};

const RUNTIME: &str = "outbox-runtime/src";

/// Besides a backend's own folder. `__private` is among them because a
/// handler that is generic over the database is registered for each of them.
const JOINTS: [&str; 6] = [
    "app/",
    "testing/",
    "lib.rs",
    "__private",
    "store/mod.rs",
    "broker/mod.rs",
];

/// Names of sqlx that stand for one database.
const POOLS: [&str; 4] = ["SqlitePool", "PgPool", "MySqlPool", "PgListener"];

pub(super) fn check(source: &Source) -> Vec<Breach> {
    let Some(path) = source.under(RUNTIME) else {
        return Vec::new();
    };
    let joint = JOINTS.iter().any(|joint| path.starts_with(joint));
    if joint || backends().any(|(port, name)| path.starts_with(&format!("{port}/{name}/"))) {
        return Vec::new();
    }
    let breach = |line, name: &str| Breach {
        line,
        message: format!("`{name}` names one backend: only app/, testing/ and its folder may"),
    };
    let mut breaches = Vec::new();
    for path in paths::of_crate(source, RUNTIME) {
        let (port, name) = (path.segment(0), path.segment(1));
        if backends().any(|backend| backend == (port, name)) {
            breaches.push(breach(path.line, &format!("{port}::{name}")));
        }
    }
    for path in paths::of_dependency(source, "sqlx") {
        let name = path.segment(0);
        if [
            "Sqlite", "sqlite", "Postgres", "postgres", "MySql", "mysql", "Pg",
        ]
        .iter()
        .any(|database| name.starts_with(database))
        {
            breaches.push(breach(path.line, &format!("sqlx::{name}")));
        }
    }
    for name in POOLS {
        let found = words(&source.code, name);
        breaches.extend(found.map(|at| breach(line_of(&source.code, at), name)));
    }
    breaches.dedup_by_key(|breach| breach.line);
    breaches
}

fn backends() -> impl Iterator<Item = (&'static str, &'static str)> {
    BACKENDS
        .iter()
        .flat_map(|(port, names)| names.iter().map(move |name| (*port, *name)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;

    #[test]
    fn a_backend_is_named_only_at_the_joints_and_at_home() {
        let text = "fn f(pool: sqlx::Pool<sqlx::Sqlite>) {}";
        for file in [
            "app/mod.rs",
            "testing/kit.rs",
            "lib.rs",
            "store/sqlite/mod.rs",
        ] {
            assert_eq!(
                breaches(&format!("outbox-runtime/src/{file}"), text),
                [""; 0],
                "{file}"
            );
        }
        let found = breaches("outbox-runtime/src/relay/mod.rs", text);
        assert_eq!(
            found,
            ["1: `sqlx::Sqlite` names one backend: only app/, testing/ and its folder may"]
        );
    }

    #[test]
    fn groups_and_pools_are_seen_too() {
        let file = "outbox-runtime/src/unit_of_work/mod.rs";
        assert_eq!(
            breaches(file, "use sqlx::{Database, postgres::PgRow};").len(),
            1
        );
        assert_eq!(
            breaches(file, "use sqlx::{Database, Transaction};").len(),
            0
        );
        assert_eq!(breaches(file, "fn f(pool: &PgPool) {}").len(), 1);
        assert!(!breaches(file, "use crate::store::sqlite::X;").is_empty());
    }
}
