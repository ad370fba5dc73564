use std::collections::HashMap;
use std::fmt::Write as _;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::AssertSqlSafe;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgConnection, Postgres};

use super::Queries;
use super::events::{InsertShape, bind_events, bind_scheduled};
use crate::store::{Change, Error, RowWrite, WriteBatch, WriteStore, key_taken, quote};

/// Begins the text that a failed check puts into the error, so that it is told from any other.
const CONFLICT: &str = "outbox-conflict:";
/// The same, in the SQL that inserts events with business keys.
const DUPLICATE: &str = "outbox-duplicate:";

impl WriteStore for Postgres {
    const ONE_STATEMENT: bool = true;

    /// One statement: each row is a data-modifying CTE that runs only if the one before changed
    /// its row, and the events are fed from the last. The chain fixes the order of the row locks.
    ///
    /// One row that does not match leaves nothing written, so its count tells all. With several
    /// rows, an earlier one may have been written when a later one does not match: then the main
    /// query raises an error, which takes everything back.
    async fn write(
        connection: &mut PgConnection,
        queries: &Queries,
        mut batch: WriteBatch<Self>,
    ) -> Result<(), Error> {
        batch.check_keys()?;
        batch.rows.sort_by(|a, b| key(a).cmp(&key(b)));
        let (sql, arguments) =
            statement(queries, &mut batch).map_err(|source| Error::Database {
                doing: "binding the events of a commit",
                source: sqlx::Error::Encode(source),
            })?;
        let result = sqlx::query_with(AssertSqlSafe(sql), arguments)
            .execute(connection)
            .await;
        match (result, batch.rows.as_slice()) {
            (Ok(done), [row]) if done.rows_affected() == 0 => Err(row.refused()),
            (Ok(_), _) => Ok(()),
            (Err(error), _) => Err(explain(error, queries, &batch)),
        }
    }
}

/// The statement that writes all of the batch.
fn statement(
    queries: &Queries,
    batch: &mut WriteBatch<Postgres>,
) -> Result<(Arc<str>, PgArguments), BoxDynError> {
    let mut arguments = batch.arguments.pop().unwrap_or_default();
    let mut inserts = [None, None];
    if !batch.events.is_empty() {
        inserts[0] = Some(bind_events(&mut arguments, &batch.events, &batch.shared)?);
    }
    if !batch.scheduled.is_empty() {
        inserts[1] = Some(bind_scheduled(
            &mut arguments,
            &batch.scheduled,
            &batch.shared,
        )?);
    }
    let row = |row: &RowWrite| {
        (
            ptr::from_ref(row.table).addr(),
            row.change,
            row.first_argument,
        )
    };
    let shape = Shape {
        rows: batch.rows.iter().map(row).collect(),
        inserts,
    };
    let text = queries
        .statements
        .of(shape, |shape| text(queries, &batch.rows, &shape.inserts));
    Ok((text, arguments))
}

/// What the text of a commit's statement depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Which table, what happens to the row, and how many arguments stand before its own.
    rows: Vec<(usize, Change, usize)>,
    inserts: [Option<InsertShape>; 2],
}

/// The texts of statements by their shape: putting one together takes longer than binding its
/// arguments.
#[derive(Debug, Default)]
pub(super) struct Statements(Mutex<HashMap<Shape, Arc<str>>>);

/// A service has few shapes, and each connection keeps a hundred statements. Commits of many rows
/// hardly ever look the same.
const MOST_STATEMENTS: usize = 200;
const MOST_ROWS: usize = 4;

impl Statements {
    fn of(&self, shape: Shape, text: impl FnOnce(&Shape) -> String) -> Arc<str> {
        if shape.rows.len() > MOST_ROWS {
            return text(&shape).into();
        }
        // Nothing panics while the lock is held; if it did, the map would still be whole.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known.get(&shape) {
            return Arc::clone(text);
        }
        if known.len() >= MOST_STATEMENTS {
            known.clear();
        }
        let text = Arc::from(text(&shape));
        known.insert(shape, Arc::clone(&text));
        text
    }
}

fn text(queries: &Queries, rows: &[RowWrite], inserts: &[Option<InsertShape>; 2]) -> String {
    let inserts = inserts.iter().flatten();
    let inserts = inserts.enumerate().map(|(n, insert)| {
        (
            format!("events{n}"),
            insert.insert(queries).after(rows.len()),
        )
    });
    let mut writes: Vec<(String, String)> = rows
        .iter()
        .enumerate()
        .map(|(n, row)| (format!("w{n}"), write_row(row, n)))
        .collect();
    writes.extend(inserts);
    // What is written last is the main query, whose count tells whether the one row was as
    // expected. Of several rows the check is the main query.
    let main = match rows.len() {
        0 | 1 => writes.pop().map(|(_, sql)| sql).unwrap_or_default(),
        several => check(several),
    };
    if writes.is_empty() {
        return main;
    }
    let parts: Vec<_> = writes
        .iter()
        .map(|(name, sql)| format!("{name} AS ({sql}{})", returning(name)))
        .collect();
    format!("WITH {}\n{main}", parts.join(",\n"))
}

/// What a later part of the statement has to see of this one.
fn returning(name: &str) -> &'static str {
    match name.starts_with('w') {
        true => " RETURNING 1",
        false => "",
    }
}

fn key(row: &RowWrite) -> (Option<&str>, &str, &str) {
    (row.table.schema(), row.table.table(), &row.aggregate_id)
}

/// The statement of one row, without its RETURNING.
fn write_row(row: &RowWrite, n: usize) -> String {
    let table = row.table.quoted_table();
    let id = quote(row.table.id());
    let version = quote(row.table.version());
    let mut place = row.first_argument;
    let mut next = || {
        place += 1;
        format!("${place}")
    };
    match row.change {
        Change::Insert => {
            let mut columns = vec![id.clone()];
            columns.extend(row.table.others().iter().map(|column| quote(column)));
            columns.push(version);
            let places: Vec<_> = columns.iter().map(|_| next()).collect();
            format!(
                "INSERT INTO {table} ({}) SELECT {}{} ON CONFLICT ({id}) DO NOTHING",
                columns.join(", "),
                places.join(", "),
                after(" WHERE", n),
            )
        }
        Change::Update => {
            let mut sets = String::new();
            for column in row.table.others() {
                let _ = write!(sets, "{} = {}, ", quote(column), next());
            }
            format!(
                "UPDATE {table} SET {sets}{version} = {} WHERE {id} = {} AND {version} = {}{}",
                next(),
                next(),
                next(),
                after(" AND", n),
            )
        }
        Change::Delete => {
            format!(
                "DELETE FROM {table} WHERE {id} = {} AND {version} = {}{}",
                next(),
                next(),
                after(" AND", n),
            )
        }
    }
}

/// The condition that the row before was written.
fn after(word: &str, n: usize) -> String {
    match n.checked_sub(1) {
        Some(before) => format!("{word} (SELECT count(*) FROM w{before}) = 1"),
        None => String::new(),
    }
}

/// The main query behind several rows: an error if one was not written. Those before it were, as
/// they are written in order.
fn check(rows: usize) -> String {
    let counts: Vec<_> = (0..rows)
        .map(|n| format!("(SELECT count(*) FROM w{n})"))
        .collect();
    let sum = counts.join(" + ");
    // The cast fails on purpose; it can't be folded while planning, as it needs the counts.
    format!(
        "SELECT CASE WHEN {sum} = {rows} THEN {rows}::bigint \
         ELSE CAST('{CONFLICT}' || ({sum})::text AS bigint) END"
    )
}

fn explain(error: sqlx::Error, queries: &Queries, batch: &WriteBatch<Postgres>) -> Error {
    if let Some(database) = error.as_database_error() {
        if let Some((_, rest)) = database.message().split_once(CONFLICT) {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            if let Some(row) = digits.parse().ok().and_then(|n: usize| batch.rows.get(n)) {
                return row.refused();
            }
        }
        if database.message().contains(DUPLICATE) {
            return batch.duplicate_event(key_taken());
        }
        let taken = [
            "outbox_message_business_key",
            "outbox_scheduled_business_key",
        ]
        .map(|index| format!("{}{index}", queries.names.prefix()));
        if database
            .constraint()
            .is_some_and(|name| taken.iter().any(|index| index == name))
        {
            return batch.duplicate_event(error);
        }
    }
    Error::Database {
        doing: "writing a commit's aggregates and events",
        source: error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(rows: usize, first_argument: usize) -> Shape {
        Shape {
            rows: vec![(1, Change::Update, first_argument); rows],
            inserts: [None, None],
        }
    }

    #[test]
    fn a_statement_of_a_known_shape_is_not_put_together_again() {
        let statements = Statements::default();
        let first = statements.of(shape(1, 0), |_| "one".to_owned());
        let again = statements.of(shape(1, 0), |_| "another".to_owned());
        assert!(Arc::ptr_eq(&first, &again));
        let other = statements.of(shape(1, 3), |_| "other".to_owned());
        assert_eq!((&*first, &*other), ("one", "other"));
    }

    #[test]
    fn the_statements_that_are_kept_are_bounded() {
        let statements = Statements::default();
        for n in 0..3 * MOST_STATEMENTS {
            let text = statements.of(shape(1, n), |_| n.to_string());
            assert_eq!(*text, *n.to_string());
        }
        for rows in MOST_ROWS + 1..MOST_ROWS + 100 {
            statements.of(shape(rows, 0), |_| String::new());
        }
        let kept = statements.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(kept.len() <= MOST_STATEMENTS);
        assert!(kept.keys().all(|shape| shape.rows.len() <= MOST_ROWS));
    }
}
