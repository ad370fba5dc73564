use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use sqlx::pool::PoolConnection;

use super::error::DeadLetterError;
use super::filter::LetterFilter;
use super::note::Note;
use super::run::{Run, Selection};
use crate::store::{
    Act, Backend, Criteria, DeadLetterStore, Error, FailedAttempt, Letter, LetterDetails, LetterId,
    LetterRequest, LetterState, Side,
};
use crate::unit_of_work::Outbox;

/// The longest page.
const LONGEST_PAGE: u32 = 1_000;
/// How many notes, and how many letters behind one, are shown.
const SHOWN: i64 = 100;
const READING: &str = "reading dead letters";

/// What is parked in an outbox's database, for operators and their tools.
///
/// Clones share everything.
///
/// ```
/// # use outbox_runtime::prelude::*;
/// use outbox_runtime::dead_letters::{DeadLetterError, LetterFilter, Note};
///
/// # #[cfg(feature = "sqlite")]
/// async fn retry_payments(outbox: &Outbox<sqlx::Sqlite>) -> Result<(), DeadLetterError> {
///     let letters = outbox.dead_letters();
///     let payments = LetterFilter::new().consumer("payments.charge");
///     for letter in letters.list(&payments, None, 20).await?.letters {
///         println!("{} {}: {:?}", letter.id, letter.event_type, letter.last_cause);
///     }
///     let note = Note::new("ada", "the card service is back")?;
///     let totals = letters.requeue(payments, note).finish().await?;
///     println!("{} tried again", totals.done);
///     Ok(())
/// }
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #     let options = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
/// #     let outbox = Outbox::new("shop", options.connect("sqlite::memory:").await?);
/// #     outbox.migrate().await?;
/// #     retry_payments(&outbox).await?;
/// #     Ok(())
/// # }
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// ```
pub struct DeadLetters<DB: Backend> {
    pub(super) outbox: Outbox<DB>,
    pub(super) queries: Arc<<DB as DeadLetterStore>::DeadLetterQueries>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Page {
    /// The letters, in the order of their ids.
    pub letters: Vec<Letter>,
    /// Where the next page begins; none behind the last one.
    pub next: Option<LetterId>,
}

impl<DB: Backend> Outbox<DB> {
    /// What is parked and discarded in this outbox's tables.
    pub fn dead_letters(&self) -> DeadLetters<DB> {
        DeadLetters::new(self)
    }
}

impl<DB: Backend> DeadLetters<DB> {
    /// What is parked and discarded in that outbox's tables.
    pub fn new(outbox: &Outbox<DB>) -> Self {
        Self {
            queries: Arc::new(DB::dead_letter_queries(outbox.names())),
            outbox: outbox.clone(),
        }
    }

    /// Lists letters in the order of their ids, first the relay's and then the inbox's: those
    /// behind `after`, `limit` of them at most (1 to 1,000).
    ///
    /// A page begins where the one before ended, whatever came or went meanwhile: no letter that
    /// stays is left out or listed twice.
    ///
    /// # Errors
    /// [`DeadLetterError::Range`] and [`DeadLetterError::Nul`] for what can't be asked, and
    /// [`DeadLetterError::Store`] when the database fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn list(
        &self,
        filter: &LetterFilter,
        after: Option<LetterId>,
        limit: u32,
    ) -> Result<Page, DeadLetterError> {
        check_range("the limit of a page", limit, LONGEST_PAGE)?;
        filter.check()?;
        let mut connection = self.connection().await?;
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut letters = Vec::new();
        for side in [Side::Relay, Side::Inbox] {
            let after = after.map_or(LetterId::new(Side::Relay, i64::MIN), |after| after);
            if !filter.has(side) || side < after.side() {
                continue;
            }
            // One more, to know whether there is a next page.
            let missing = i64::from(limit) + 1 - i64::try_from(letters.len()).unwrap_or_default();
            let request = LetterRequest {
                side,
                after: if side == after.side() {
                    after.number()
                } else {
                    i64::MIN
                },
                up_to: i64::MAX,
                limit: missing,
                ids: None,
                criteria: &filter.criteria,
            };
            let found = self
                .read(&mut connection, &request)
                .await
                .map_err(Error::database(READING))?;
            letters.extend(found);
            if letters.len() > wanted {
                break;
            }
        }
        let has_more = letters.len() > wanted;
        letters.truncate(wanted);
        let next = letters.last().filter(|_| has_more).map(|letter| letter.id);
        Ok(Page { letters, next })
    }

    /// How many letters there are: the length of a progress bar.
    ///
    /// # Errors
    /// [`DeadLetterError::Nul`] for what can't be asked, [`DeadLetterError::Store`] when the
    /// database fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn count(&self, filter: &LetterFilter) -> Result<u64, DeadLetterError> {
        filter.check()?;
        let mut connection = self.connection().await?;
        let mut count = 0;
        for side in [Side::Relay, Side::Inbox] {
            if filter.has(side) {
                let request = LetterRequest {
                    side,
                    after: i64::MIN,
                    up_to: i64::MAX,
                    limit: i64::MAX,
                    ids: None,
                    criteria: &filter.criteria,
                };
                count += DB::count_letters(&mut connection, &self.queries, &request)
                    .await
                    .map_err(Error::database(READING))?
                    .unsigned_abs();
            }
        }
        Ok(count)
    }

    /// Shows all that is kept of a letter, its payload too; `None` if there is no such letter,
    /// parked or discarded.
    ///
    /// # Errors
    /// [`DeadLetterError::Store`] when the database fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn show(&self, id: LetterId) -> Result<Option<LetterDetails>, DeadLetterError> {
        let mut connection = self.connection().await?;
        self.read_details(&mut connection, id)
            .await
            .map_err(|error| Error::database("reading a dead letter")(error).into())
    }

    /// Has letters tried again: now, and with their attempts counted from the start.
    ///
    /// Dead letters are what it is for. A failing one is tried now instead of when it is due. One
    /// that was not tried yet is refused: it waits for its turn. Order stays: a letter that is
    /// requeued is published or handled before those that wait behind it.
    ///
    /// A relay or consumer in this process begins at once, others when they next look: within the
    /// longest pause of their polling. Letters of a consumer that no running program has stay
    /// until one has it.
    ///
    /// A filter finds what is parked; discarded letters are not, and are found by their ids alone,
    /// which are then refused with the reason.
    ///
    /// Nothing is done until the [`Run`] is driven.
    #[must_use = "nothing is done until the run is driven: call `finish` or `next_chunk`"]
    pub fn requeue(&self, letters: impl Into<Selection>, note: Note) -> Run<DB> {
        Run::new(self.clone(), Act::Requeue, letters.into(), Some(note))
    }

    /// Gives letters up: they are moved to `outbox_discarded`, envelope and causes with them.
    ///
    /// Any parked letter can be discarded, also one that is failing or waits behind another. What
    /// waits behind it goes on without it.
    ///
    /// Nothing is done until the [`Run`] is driven.
    #[must_use = "nothing is done until the run is driven: call `finish` or `next_chunk`"]
    pub fn discard(&self, letters: impl Into<Selection>, note: Note) -> Run<DB> {
        Run::new(self.clone(), Act::Discard, letters.into(), Some(note))
    }

    /// Says what an act would do, and does nothing.
    ///
    /// It locks and reads as the act does and rolls back each chunk, so it reports what the act
    /// would have reported at that moment.
    #[must_use = "nothing is said until the run is driven: call `finish` or `next_chunk`"]
    pub fn dry_run(&self, act: Act, letters: impl Into<Selection>) -> Run<DB> {
        Run::new(self.clone(), act, letters.into(), None)
    }

    pub(super) async fn connection(&self) -> Result<PoolConnection<DB>, Error> {
        self.outbox.connection().await
    }

    /// Letters with their place among others.
    pub(super) async fn read(
        &self,
        connection: &mut DB::Connection,
        request: &LetterRequest<'_>,
    ) -> Result<Vec<Letter>, sqlx::Error> {
        let mut letters = DB::letters(connection, &self.queries, request).await?;
        if !letters.is_empty() {
            DB::place_letters(connection, &self.queries, request.side, &mut letters).await?;
        }
        Ok(letters)
    }

    async fn read_details(
        &self,
        connection: &mut PoolConnection<DB>,
        id: LetterId,
    ) -> Result<Option<LetterDetails>, sqlx::Error> {
        let queries = &self.queries;
        let (side, number) = (id.side(), id.number());
        let any = Criteria {
            states: all_states(),
            ..Criteria::default()
        };
        let request = LetterRequest {
            side,
            after: number.saturating_sub(1),
            up_to: number,
            limit: 1,
            ids: Some(&[number]),
            criteria: &any,
        };
        let letter = self.read(connection, &request).await?.pop();
        let Some(letter) = letter else {
            return Ok(None);
        };
        // If it is out meanwhile, it is not found.
        let Some(content) = DB::letter_content(connection, queries, id).await? else {
            return Ok(None);
        };
        let failed_attempts = match &content.causes {
            Some(json) => read_attempts(json)?,
            None => DB::letter_attempts(connection, queries, id).await?,
        };
        let later = match letter.behind {
            0 => Vec::new(),
            _ => DB::later_letters(connection, queries, side, &[number], SHOWN).await?,
        };
        let notes = DB::letter_notes(connection, queries, &letter, SHOWN).await?;
        Ok(Some(LetterDetails {
            letter,
            content,
            failed_attempts,
            first_behind: later
                .into_iter()
                .map(|(_, later)| LetterId::new(side, later))
                .collect(),
            notes,
        }))
    }
}

fn read_attempts(json: &str) -> Result<Vec<FailedAttempt>, sqlx::Error> {
    serde_json::from_str(json).map_err(|error| sqlx::Error::Decode(error.into()))
}

pub(super) fn all_states() -> i32 {
    [
        LetterState::Dead,
        LetterState::Failing,
        LetterState::Waiting,
        LetterState::Discarded,
    ]
    .into_iter()
    .fold(0, |bits, state| bits | state.bit())
}

pub(super) fn check_range(
    what: &'static str,
    value: u32,
    most: u32,
) -> Result<(), DeadLetterError> {
    if (1..=most).contains(&value) {
        Ok(())
    } else {
        Err(DeadLetterError::Range { what, value, most })
    }
}

impl<DB: Backend> Clone for DeadLetters<DB> {
    fn clone(&self) -> Self {
        Self {
            outbox: self.outbox.clone(),
            queries: Arc::clone(&self.queries),
        }
    }
}

impl<DB: Backend> fmt::Debug for DeadLetters<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters")
            .field("outbox", &self.outbox)
            .finish_non_exhaustive()
    }
}
