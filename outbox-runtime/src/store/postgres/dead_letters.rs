use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgConnection, PgRow, Postgres};
use sqlx::{AssertSqlSafe, Executor, Row, query::Query};
use time::OffsetDateTime;

use crate::domain::MessageId;
use crate::store::dead_letters::{
    LetterColumns, NoteColumns, Place, into_note, merge, numbers_of, put_in_place,
};
use crate::store::{
    Act, DeadLetterStore, FailedAttempt, Letter, LetterContent, LetterId, LetterRequest, Names,
    NoteRow, OperatorNote, Side,
};

/// The SQL about dead letters of one outbox on PostgreSQL.
#[derive(Debug)]
pub struct DeadLetterQueries {
    relay: OfSide,
    inbox: OfSide,
    discarded: Listing,
    notes: Arc<str>,
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
    lock: Arc<str>,
    requeue: Arc<str>,
    discard: Arc<str>,
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
            lock: render(include_str!(concat!("sql/lock_letters_", $side, ".sql"))),
            requeue: render(include_str!(concat!("sql/requeue_", $side, ".sql"))),
            discard: render(include_str!(concat!("sql/discard_", $side, ".sql"))),
        }
    }};
}

impl DeadLetterStore for Postgres {
    type DeadLetterQueries = DeadLetterQueries;

    fn dead_letter_queries(names: &Names) -> DeadLetterQueries {
        DeadLetterQueries {
            relay: of_side!(names, "relay"),
            inbox: of_side!(names, "inbox"),
            discarded: Listing::new(names, include_str!("sql/letters_discarded.sql")),
            notes: Arc::from(names.render(include_str!("sql/letter_notes.sql"))),
        }
    }

    async fn letters(
        connection: &mut PgConnection,
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
        connection: &mut PgConnection,
        queries: &DeadLetterQueries,
        side: Side,
        letters: &mut [Letter],
    ) -> Result<(), sqlx::Error> {
        let sql = Arc::clone(&queries.of(side).places);
        let places: Vec<Place> = sqlx::query_as(AssertSqlSafe(sql))
            .bind(numbers_of(letters))
            .fetch_all(connection)
            .await?;
        put_in_place(side, letters, places);
        Ok(())
    }

    async fn count_letters(
        connection: &mut PgConnection,
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
        connection: &mut PgConnection,
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
        connection: &mut PgConnection,
        queries: &DeadLetterQueries,
        id: LetterId,
    ) -> Result<Vec<FailedAttempt>, sqlx::Error> {
        let sql = Arc::clone(&queries.of(id.side()).attempts);
        let rows: Vec<(i32, OffsetDateTime, String)> = sqlx::query_as(AssertSqlSafe(sql))
            .bind(id.number())
            .fetch_all(connection)
            .await?;
        let attempt = |(attempt, failed_at, cause)| FailedAttempt {
            attempt: u32::try_from(attempt).unwrap_or_default(),
            failed_at,
            cause,
        };
        Ok(rows.into_iter().map(attempt).collect())
    }

    async fn letter_notes(
        connection: &mut PgConnection,
        queries: &DeadLetterQueries,
        letter: &Letter,
        most: i64,
    ) -> Result<Vec<OperatorNote>, sqlx::Error> {
        let side = letter.id.side();
        let rows: Vec<NoteColumns<OffsetDateTime>> =
            sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.notes)))
                .bind(side.as_str())
                .bind(letter.message_id.as_uuid())
                .bind(letter.consumer.as_deref().unwrap_or_default())
                .bind(most)
                .fetch_all(connection)
                .await?;
        rows.into_iter()
            .map(|(run, act, number, operator, reason, at)| {
                into_note(side, (run, act, number, operator, reason, ()), at)
            })
            .collect()
    }

    async fn later_letters(
        connection: &mut PgConnection,
        queries: &DeadLetterQueries,
        side: Side,
        ids: &[i64],
        most: i64,
    ) -> Result<Vec<(i64, i64)>, sqlx::Error> {
        sqlx::query_as(AssertSqlSafe(Arc::clone(&queries.of(side).later)))
            .bind(ids)
            .bind(most)
            .fetch_all(connection)
            .await
    }

    async fn lock_letters(
        connection: &mut PgConnection,
        queries: &DeadLetterQueries,
        side: Side,
        ids: &[i64],
    ) -> Result<Vec<i64>, sqlx::Error> {
        // What is read after the locks has to be newer than they are, whatever the server's default.
        connection
            .execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            .await?;
        let sql = &queries.of(side).lock;
        let rows = run(sql).bind(ids).fetch_all(connection).await?;
        if side == Side::Relay {
            return Ok(Vec::new());
        }
        let locked: HashSet<i64> = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?;
        let others = ids.iter().filter(|id| !locked.contains(id));
        Ok(others.copied().collect())
    }

    async fn act_on_letters(
        connection: &mut PgConnection,
        queries: &DeadLetterQueries,
        act: Act,
        side: Side,
        ids: &[i64],
        note: NoteRow<'_>,
    ) -> Result<u64, sqlx::Error> {
        let queries = queries.of(side);
        let sql = match act {
            Act::Requeue => &queries.requeue,
            Act::Discard => &queries.discard,
        };
        let done: i64 = sqlx::query_scalar(AssertSqlSafe(Arc::clone(sql)))
            .bind(ids)
            .bind(note.run)
            .bind(note.operator)
            .bind(note.reason)
            .fetch_one(connection)
            .await?;
        Ok(done.unsigned_abs())
    }
}

fn run(sql: &Arc<str>) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(sql)))
}

fn asking<'q>(sql: &Arc<str>, request: &LetterRequest<'q>) -> Query<'q, Postgres, PgArguments> {
    let criteria = request.criteria;
    sqlx::query(AssertSqlSafe(Arc::clone(sql)))
        .bind(request.after)
        .bind(request.up_to)
        .bind(request.limit)
        .bind(criteria.states)
        .bind(request.ids)
        .bind(criteria.event_type.as_deref())
        .bind(criteria.aggregate_type.as_deref())
        .bind(criteria.aggregate_id.as_deref())
        .bind(criteria.consumer.as_deref())
        .bind(criteria.correlation_id.as_deref())
        .bind(criteria.message_id.as_ref().map(MessageId::as_uuid))
        .bind(criteria.older_than.map(as_seconds))
        .bind(criteria.newer_than.map(as_seconds))
        .bind(criteria.cause.as_deref())
}

fn as_seconds(age: Duration) -> f64 {
    age.as_secs_f64()
}

fn read_letters(rows: &[PgRow], side: Side) -> Result<Vec<Letter>, sqlx::Error> {
    rows.iter()
        .map(|row| read_letter(row)?.into_letter(side))
        .collect()
}

fn read_letter(row: &PgRow) -> Result<LetterColumns, sqlx::Error> {
    Ok(LetterColumns {
        number: row.try_get(0)?,
        consumer: row.try_get(1)?,
        state: row.try_get(2)?,
        attempts: row.try_get(3)?,
        parked_at: row.try_get(4)?,
        failing_since: row.try_get(5)?,
        next_attempt_at: row.try_get(6)?,
        discarded_at: row.try_get(7)?,
        last_cause: row.try_get(8)?,
        message_id: row.try_get(9)?,
        event_type: row.try_get(10)?,
        schema_version: row.try_get(11)?,
        aggregate_type: row.try_get(12)?,
        aggregate_id: row.try_get(13)?,
        sequence: row.try_get(14)?,
        correlation_id: row.try_get(15)?,
        producer: row.try_get(16)?,
        occurred_at: row.try_get(17)?,
        occurred_nanos: row.try_get(18)?,
        payload_bytes: row.try_get::<i32, _>(19)?.into(),
    })
}
