use std::collections::{BTreeMap, BTreeSet};

use crate::handler::{AggregateRegistration, EventRegistration};
use crate::problem::Problem;
use crate::store::{Backend, Error};
use crate::unit_of_work::Outbox;

/// Two types with one name and version on the wire.
pub(super) fn check_events() -> Vec<Problem> {
    let mut events: Vec<_> = EventRegistration::all().collect();
    events.sort_by_key(|event| (event.file, event.line));
    let mut seen: BTreeMap<(&str, u32), &EventRegistration> = BTreeMap::new();
    let mut problems = Vec::new();
    for event in events {
        let Some(first) = seen.insert((event.name, event.version), event) else {
            continue;
        };
        problems.push(Problem::at(
            event.file,
            event.line,
            format!(
                "`{}` and `{}` ({}:{}) are both the event {} v{}; give one of them another `name` or `version`",
                event.rust_type, first.rust_type, first.file, first.line, event.name, event.version,
            ),
        ));
    }
    problems
}

/// Two aggregates whose messages nobody could tell apart.
pub(super) fn check_aggregates() -> Vec<Problem> {
    let mut aggregates: Vec<_> = AggregateRegistration::all().collect();
    aggregates.sort_by_key(|aggregate| (aggregate.file, aggregate.line));
    let mut seen: BTreeMap<&str, &AggregateRegistration> = BTreeMap::new();
    let mut problems = Vec::new();
    for aggregate in aggregates {
        let Some(first) = seen.insert(aggregate.aggregate_type, aggregate) else {
            continue;
        };
        problems.push(Problem::at(
            aggregate.file,
            aggregate.line,
            format!(
                "`{}` and `{}` ({}:{}) are both the aggregate type {}; give one of them another `type_name`",
                aggregate.rust_type,
                first.rust_type,
                first.file,
                first.line,
                aggregate.aggregate_type,
            ),
        ));
    }
    problems
}

/// Whether the tables of the outbox are as this program needs them.
///
/// # Errors
/// When they can't be looked at.
pub(super) async fn check_migrations<DB: Backend>(
    outbox: &Outbox<DB>,
) -> Result<Vec<Problem>, Error> {
    match outbox.check_migrations().await {
        Ok(()) => Ok(Vec::new()),
        Err(error @ (Error::NotMigrated { .. } | Error::MigrationsTooNew { .. })) => {
            Ok(vec![Problem::new(error.to_string())])
        }
        Err(error) => Err(error),
    }
}

/// Whether the aggregates' tables exist and have all their columns.
///
/// # Errors
/// When they can't be looked at.
pub(super) async fn check_tables<DB: Backend>(
    outbox: &Outbox<DB>,
    skipped: &BTreeSet<&'static str>,
) -> Result<Vec<Problem>, Error> {
    let mut aggregates: Vec<_> = AggregateRegistration::all()
        .filter(|aggregate| !skipped.contains(aggregate.aggregate_type))
        .collect();
    aggregates.sort_by_key(|aggregate| (aggregate.file, aggregate.line));
    let mut problems = Vec::new();
    for aggregate in aggregates {
        let table = (aggregate.table)();
        let columns = DB::columns(outbox.pool(), table).await?;
        let missing: Vec<_> = table
            .columns()
            .filter(|wanted| {
                !columns
                    .iter()
                    .any(|column| DB::is_same_column(wanted, column))
            })
            .collect();
        if !missing.is_empty() {
            let sentence = describe(aggregate, columns.is_empty(), &missing);
            problems.push(Problem::at(aggregate.file, aggregate.line, sentence));
        }
    }
    Ok(problems)
}

/// Warns of names under which this service wrote and which no event of the program has: most
/// likely a type was renamed, and consumers wait for events that come under another name now.
///
/// It is no reason not to start, since an event may have been given up on purpose.
///
/// # Errors
/// When the log can't be looked at.
pub(super) async fn warn_of_lost_names<DB: Backend>(outbox: &Outbox<DB>) -> Result<(), Error> {
    let written = DB::recent_event_types(outbox.pool(), outbox.names(), outbox.service()).await?;
    let lost: Vec<_> = written
        .into_iter()
        .filter(|name| EventRegistration::all().all(|event| event.name != name))
        .collect();
    if !lost.is_empty() {
        tracing::warn!(
            event_types = lost.join(", "),
            "this service wrote events lately that no type of the program writes any more; if a \
             type was renamed, keep its name on the wire by `#[domain_event(name = \"..\")]`"
        );
    }
    Ok(())
}

fn describe(aggregate: &AggregateRegistration, no_table: bool, missing: &[&str]) -> String {
    let table = (aggregate.table)();
    let name = match table.schema() {
        Some(schema) => format!("{schema}.{}", table.table()),
        None => table.table().to_owned(),
    };
    let columns = missing
        .iter()
        .map(|column| format!("`{column}`"))
        .collect::<Vec<_>>()
        .join(", ");
    let rust_type = aggregate.rust_type;
    if no_table {
        format!(
            "the table `{name}` of `{rust_type}` does not exist; create it with the columns {columns}, \
             or name the right one by `#[aggregate(table = \"..\")]`; if it belongs to another \
             database, call `.without_table_check::<..>()`"
        )
    } else {
        format!(
            "the table `{name}` of `{rust_type}` lacks the column(s) {columns}; add them, or map the \
             fields by `#[aggregate(column = \"..\")]` or `#[aggregate(skip)]`"
        )
    }
}
