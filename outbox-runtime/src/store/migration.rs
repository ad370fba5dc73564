use std::borrow::Cow;
use std::future::Future;

use sqlx::{Database, Pool};

use super::{Error, Names};

/// One step of the tables' history, as SQL.
///
/// Run them by `Outbox::migrate`, or put them among your own migrations: each one records itself
/// in `outbox_migration`, so either way the program knows where the tables stand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migration {
    /// Its number, from 1.
    pub version: i64,
    /// What it does, as in its file's name.
    pub name: &'static str,
    /// The SQL with schema and prefix filled in. It may hold several statements.
    pub sql: Cow<'static, str>,
}

impl Migration {
    pub(crate) fn render(names: &Names, files: &[(i64, &'static str, &'static str)]) -> Vec<Self> {
        files
            .iter()
            .map(|&(version, name, sql)| Self {
                version,
                name,
                sql: Cow::Owned(names.render(sql)),
            })
            .collect()
    }
}

/// Brings the tables up to date and says where they stand.
pub trait MigrationStore: Database {
    /// Whether tables can live in a schema of their own.
    #[doc(hidden)]
    const HAS_SCHEMAS: bool;

    /// The migrations of this backend.
    #[doc(hidden)]
    fn migrations(names: &Names) -> Vec<Migration>;

    /// Applies those that are missing. Several processes may do it at once.
    #[doc(hidden)]
    fn migrate(pool: &Pool<Self>, names: &Names) -> impl Future<Output = Result<(), Error>> + Send;

    /// The newest migration that is applied; 0 for none.
    #[doc(hidden)]
    fn applied(pool: &Pool<Self>, names: &Names)
    -> impl Future<Output = Result<i64, Error>> + Send;
}

/// Compares what is applied with what this program has.
///
/// # Errors
/// [`Error::NotMigrated`] or [`Error::MigrationsTooNew`].
pub(crate) fn compare(applied: i64, migrations: &[Migration]) -> Result<(), Error> {
    let known = migrations
        .iter()
        .map(|m| m.version)
        .max()
        .unwrap_or_default();
    match applied.cmp(&known) {
        std::cmp::Ordering::Less => Err(Error::NotMigrated {
            found: applied,
            needed: known,
        }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Error::MigrationsTooNew {
            found: applied,
            known,
        }),
    }
}
