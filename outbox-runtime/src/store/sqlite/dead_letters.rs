use std::sync::Arc;

use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row, query::Query};
use time::OffsetDateTime;
use uuid::Uuid;

use super::relay::as_millis;
use crate::domain::MessageId;
use crate::store::dead_letters::{
    LetterColumns, NoteColumns, Place, into_note, merge, numbers_of, put_in_place,
};
use crate::store::{
    Act, DeadLetterStore, FailedAttempt, Letter, LetterContent, LetterId, LetterRequest, Names,
    NoteRow, OperatorNote, Side,
};

/// The SQL about dead letters of one outbox on SQLite.
#[derive(Debug)]
pub struct DeadLetterQueries {
    relay: OfSide,
    inbox: OfSide,
    discarded: Listing,
    notes: Arc<str>,
    promote: Arc<str>,
}

/// The letters of one table, and how many there are.
#[derive(Debug)]
struct Listing {
    letters: Arc<str>,
    count: Arc<str>,
}

impl Listing {
    fn new(names: &Names, sql: &str) -> Self {
        Self {
            letters: Arc::from(names.render(sql)),
            count: Arc::from(names.render(&format!("SELECT count(*) FROM ({sql}) AS letter"))),
        }
    }
}

#[derive(Debug)]
struct OfSide {
    letters: Listing,
    places: Arc<str>,
    rest: Arc<str>,
    attempts: Arc<str>,
    later: Arc<str>,
    note: Arc<str>,
    requeue: Arc<str>,
    /// One after another.
    discard: [Arc<str>; 3],
}

impl DeadLetterQueries {
    fn of(&self, side: Side) -> &OfSide {
        match side {
            Side::Relay => &self.relay,
            Side::Inbox => &self.inbox,
        }
    }
}

macro_rules! of_side {
    ($names:expr, $side:literal) => {{
        let render = |sql: &str| Arc::from($names.render(sql));
        OfSide {
            letters: Listing::new($names, include_str!(concat!("sql/letters_", $side, ".sql"))),
            places: render(include_str!(concat!("sql/letter_places_", $side, ".sql"))),
            rest: render(include_str!(concat!("sql/letter_rest_", $side, ".sql"))),
            attempts: render(include_str!(concat!("sql/letter_attempts_", $side, ".sql"))),
            later: render(include_str!(concat!("sql/letters_later_", $side, ".sql"))),
            note: render(include_str!(concat!("sql/note_", $side, ".sql"))),
            requeue: render(include_str!(concat!("sql/requeue_", $side, ".sql"))),
            discard: [
                render(include_str!(concat!("sql/discard_keep_", $side, ".sql"))),
                render(include_str!(concat!(
                    "sql/discard_attempts_",
                    $side,
                    ".sql"
                ))),
                render(include_str!(concat!("sql/discard_", $side, ".sql"))),
            ],
        }
    }};
}

impl DeadLetterStore for Sqlite {
    type DeadLetterQueries = DeadLetterQueries;

    fn dead_letter_queries(names: &Names) -> DeadLetterQueries {
        let render = |sql: &str| Arc::from(names.render(sql));
        DeadLetterQueries {
            relay: of_side!(names, "relay"),
            inbox: of_side!(names, "inbox"),
            discarded: Listing::new(names, include_str!("sql/letters_discarded.sql")),
            notes: render(include_str!("sql/letter_notes.sql")),
            promote: render(include_str!("sql/discard_promote.sql")),
        }
    }

    async fn letters(
        connection: &mut SqliteConnection,
        queries: &DeadLetterQueries,
        request: &LetterRequest<'_>,
    ) -> Result<Vec<Letter>, sqlx::Error> {
        let side = request.side;
        let mut parked = Vec::new();
        if request.wants_parked() {
            let sql = &queries.of(side).letters.letters;
            let rows = asking(sql, request).fetch_all(&mut *connection).await?;
            parked = read_letters(&rows, side)?;
        }
        if !request.wants_discarded() {
            return Ok(parked);
        }
        let discarded = asking(&queries.discarded.letters, request).bind(side.as_str());
        let rows = discarded.fetch_all(connection).await?;
        Ok(merge(parked, read_letters(&rows, side)?, request.limit))
    }

    async fn place_letters(
        connection: &mut SqliteConnection,
        queries: &DeadLetterQueries,
        side: Side,
        letters: &mut [Letter],
    ) -> Result<(), sqlx::Error> {
        let sql = Arc::clone(&queries.of(side).places);
        let places: Vec<Place> = sqlx::query_as(AssertSqlSafe(sql))
            .bind(as_json(&numbers_of(letters)))
            .fetch_all(connection)
            .await?;
        put_in_place(side, letters, places);
        Ok(())
    }

    async fn count_letters(
        connection: &mut SqliteConnection,
        queries: &DeadLetterQueries,
        request: &LetterRequest<'_>,
    ) -> Result<i64, sqlx::Error> {
        let mut count = 0;
        if request.wants_parked() {
            let sql = &queries.of(request.side).letters.count;
            let row = asking(sql, request).fetch_one(&mut *connection).await?;
            count += row.try_get::<i64, _>(0)?;
        }
        if request.wants_discarded() {
            let discarded = asking(&queries.discarded.count, request);
            let row = discarded.bind(request.side.as_str()).fetch_one(connection);
            count += row.await?.try_get::<i64, _>(0)?;
        }
        Ok(count)
    }

    async fn letter_content(
        connection: &mut SqliteConnection,
        queries: &DeadLetterQueries,
        id: LetterId,
    ) -> Result<Option<LetterContent>, sqlx::Error> {
        let row = run(&queries.of(id.side()).rest)
            .bind(id.number())
            .fetch_optional(connection)
            .await?;
        row.map(|row| {
            Ok(LetterContent {
                causation_id: row.try_get(0)?,
                traceparent: row.try_get(1)?,
                tracestate: row.try_get(2)?,
                headers: row.try_get(3)?,
                business_key: row.try_get(4)?,
                idempotency_key: row.try_get(5)?,
                payload: row.try_get(6)?,
                causes: row.try_get(7)?,
            })
        })
        .transpose()
    }

    async fn letter_attempts(
        connection: &mut SqliteConnection,
        queries: &DeadLetterQueries,
        id: LetterId,
    ) -> Result<Vec<FailedAttempt>, sqlx::Error> {
        let sql = Arc::clone(&queries.of(id.side()).attempts);
        let rows: Vec<(i64, i64, String)> = sqlx::query_as(AssertSqlSafe(sql))
            .bind(id.number())
            .fetch_all(connection)
            .await?;
        rows.into_iter()
            .map(|(attempt, failed_at, cause)| {
                Ok(FailedAttempt {
                    attempt: u32::try_from(attempt).unwrap_or_default(),
                    failed_at: as_time(failed_at)?,
                    cause,
                })
            })
            .collect()
    }

    async fn letter_notes(
        connection: &mut SqliteConnection,
        queries: &DeadLetterQueries,
        letter: &Letter,
        most: i64,
    ) -> Result<Vec<OperatorNote>, sqlx::Error> {
        let side = letter.id.side();
        let rows: Vec<NoteColumns<i64>> = sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.notes)))
            .bind(side.as_str())
            .bind(letter.message_id.as_uuid())
            .bind(letter.consumer.as_deref().unwrap_or_default())
            .bind(most)
            .fetch_all(connection)
            .await?;
        rows.into_iter()
            .map(|(run, act, number, operator, reason, at)| {
                let columns = (run, act, number, operator, reason, ());
                into_note(side, columns, as_time(at)?)
            })
            .collect()
    }

    async fn later_letters(
        connection: &mut SqliteConnection,
        queries: &DeadLetterQueries,
        side: Side,
        ids: &[i64],
        most: i64,
    ) -> Result<Vec<(i64, i64)>, sqlx::Error> {
        let sql = &queries.of(side).later;
        let mut pairs = Vec::new();
        for &id in ids {
            let later: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(Arc::clone(sql)))
                .bind(id)
                .bind(most)
                .fetch_all(&mut *connection)
                .await?;
            pairs.extend(later.into_iter().map(|later| (id, later)));
        }
        Ok(pairs)
    }

    /// The write transaction of the caller's is the lock.
    async fn lock_letters(
        _connection: &mut SqliteConnection,
        _queries: &DeadLetterQueries,
        _side: Side,
        _ids: &[i64],
    ) -> Result<Vec<i64>, sqlx::Error> {
        Ok(Vec::new())
    }

    async fn act_on_letters(
        connection: &mut SqliteConnection,
        queries: &DeadLetterQueries,
        act: Act,
        side: Side,
        ids: &[i64],
        note: NoteRow<'_>,
    ) -> Result<u64, sqlx::Error> {
        let of_side = queries.of(side);
        let ids = as_json(ids);
        run(&of_side.note)
            .bind(&ids)
            .bind(note.run)
            .bind(act.as_str())
            .bind(note.operator)
            .bind(note.reason)
            .execute(&mut *connection)
            .await?;
        let steps = match act {
            Act::Requeue => std::slice::from_ref(&of_side.requeue),
            Act::Discard => &of_side.discard[..],
        };
        let mut done = 0;
        for sql in steps {
            done = run(sql)
                .bind(&ids)
                .execute(&mut *connection)
                .await?
                .rows_affected();
        }
        if (act, side) == (Act::Discard, Side::Relay) {
            let promote = run(&queries.promote).bind(&ids);
            promote.execute(connection).await?;
        }
        Ok(done)
    }
}

fn run<'q>(sql: &Arc<str>) -> Query<'q, Sqlite, SqliteArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(sql)))
}

fn asking<'q>(sql: &Arc<str>, request: &LetterRequest<'q>) -> Query<'q, Sqlite, SqliteArguments> {
    let criteria = request.criteria;
    run(sql)
        .bind(request.after)
        .bind(request.up_to)
        .bind(request.limit)
        .bind(criteria.states)
        .bind(request.ids.map(as_json))
        .bind(criteria.event_type.as_deref())
        .bind(criteria.aggregate_type.as_deref())
        .bind(criteria.aggregate_id.as_deref())
        .bind(criteria.consumer.as_deref())
        .bind(criteria.correlation_id.as_deref())
        .bind(criteria.message_id.as_ref().map(MessageId::as_uuid))
        .bind(criteria.older_than.map(as_millis))
        .bind(criteria.newer_than.map(as_millis))
        .bind(criteria.cause.as_deref())
}

fn as_json(ids: &[i64]) -> String {
    serde_json::Value::from(ids).to_string()
}

fn as_time(millis: i64) -> Result<OffsetDateTime, sqlx::Error> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
        .map_err(|error| sqlx::Error::Decode(error.into()))
}

fn read_letters(rows: &[SqliteRow], side: Side) -> Result<Vec<Letter>, sqlx::Error> {
    rows.iter()
        .map(|row| read_letter(row)?.into_letter(side))
        .collect()
}

fn read_letter(row: &SqliteRow) -> Result<LetterColumns, sqlx::Error> {
    let time = |column| row.try_get(column).map(|at: Option<i64>| at.map(as_time));
    // A foreign writer can have stored what is no id.
    let message_id: Vec<u8> = row.try_get(9)?;
    Ok(LetterColumns {
        number: row.try_get(0)?,
        consumer: row.try_get(1)?,
        state: row.try_get(2)?,
        attempts: row.try_get(3)?,
        parked_at: as_time(row.try_get(4)?)?,
        failing_since: time(5)?.transpose()?,
        next_attempt_at: time(6)?.transpose()?,
        discarded_at: time(7)?.transpose()?,
        last_cause: row.try_get(8)?,
        message_id: Uuid::from_slice(&message_id).unwrap_or_default(),
        event_type: row.try_get(10)?,
        schema_version: row.try_get(11)?,
        aggregate_type: row.try_get(12)?,
        aggregate_id: row.try_get(13)?,
        sequence: row.try_get(14)?,
        correlation_id: row.try_get(15)?,
        producer: row.try_get(16)?,
        occurred_at: time(17)?.and_then(Result::ok),
        occurred_nanos: row.try_get(18)?,
        payload_bytes: row.try_get(19)?,
    })
}
