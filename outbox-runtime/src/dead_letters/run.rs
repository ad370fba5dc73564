use std::collections::{BTreeSet, HashMap};
use std::fmt;

use uuid::Uuid;

use super::error::DeadLetterError;
use super::filter::LetterFilter;
use super::letters::{DeadLetters, all_states, check_range};
use super::note::Note;
use super::report::{ChunkReport, Outcome, Refusal, Target, Totals, judge};
use crate::store::{
    Act, Backend, Criteria, Error, Letter, LetterId, LetterRequest, LetterState, NoteRow, Side,
    is_serialization_failure,
};
use crate::unit_of_work::WriteTransaction;

/// The most letters of a chunk.
const LARGEST_CHUNK: u32 = 1_000;
const CHUNK: u32 = 100;
/// How many letters behind one are named in a report.
const NAMED: i64 = 20;
/// How often a chunk is tried that the database takes back for another transaction's sake.
const TRIES: u32 = 5;

/// Which letters an act is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(Which);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    Ids(BTreeSet<LetterId>),
    Filter(Box<LetterFilter>),
}

impl From<LetterId> for Selection {
    fn from(id: LetterId) -> Self {
        Self(Which::Ids(BTreeSet::from([id])))
    }
}

impl FromIterator<LetterId> for Selection {
    fn from_iter<T: IntoIterator<Item = LetterId>>(ids: T) -> Self {
        Self(Which::Ids(ids.into_iter().collect()))
    }
}

impl From<LetterFilter> for Selection {
    fn from(filter: LetterFilter) -> Self {
        Self(Which::Filter(Box::new(filter)))
    }
}

/// An act on letters, or a dry run of one, chunk by chunk.
///
/// Each chunk is one transaction. Letters that are given by id are all reported, those that can't
/// be acted on with the reason. With a filter, a letter that no longer matches when its turn comes
/// is passed over.
///
/// ```
/// # use outbox_runtime::prelude::*;
/// use outbox_runtime::dead_letters::{Act, DeadLetterError, LetterFilter};
///
/// # #[cfg(feature = "sqlite")]
/// async fn plan(outbox: &Outbox<sqlx::Sqlite>) -> Result<(), DeadLetterError> {
///     let letters = outbox.dead_letters();
///     let mut run = letters.dry_run(Act::Discard, LetterFilter::new()).chunk_size(50);
///     while let Some(chunk) = run.next_chunk().await? {
///         for outcome in &chunk.outcomes {
///             match &outcome.refusal {
///                 None => println!("{} would be discarded", outcome.id),
///                 Some(refusal) => println!("{}: {refusal}", outcome.id),
///             }
///         }
///         println!("{} so far", chunk.so_far.done);
///     }
///     Ok(())
/// }
/// ```
#[must_use = "nothing is done until the run is driven: call `finish` or `next_chunk`"]
pub struct Run<DB: Backend> {
    letters: DeadLetters<DB>,
    act: Act,
    selection: Selection,
    /// None in a dry run.
    note: Option<Note>,
    id: Uuid,
    chunk: u32,
    /// The last letter that was looked at; none when the run is over.
    position: Option<LetterId>,
    totals: Totals,
}

impl<DB: Backend> Run<DB> {
    pub(super) fn new(
        letters: DeadLetters<DB>,
        act: Act,
        selection: Selection,
        note: Option<Note>,
    ) -> Self {
        Self {
            id: letters.outbox.inner.clock.new_id(),
            letters,
            act,
            selection,
            note,
            chunk: CHUNK,
            position: Some(LetterId::new(Side::Relay, i64::MIN)),
            totals: Totals::default(),
        }
    }

    /// How many letters a transaction takes: 1 to 1,000; 100 if not set.
    pub fn chunk_size(mut self, letters: u32) -> Self {
        self.chunk = letters;
        self
    }

    /// The run's own id, as its notes have it.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Does the next chunk; `None` when there are no more letters.
    ///
    /// # Errors
    /// [`DeadLetterError`]; nothing of the failed chunk is done, and calling again tries it again.
    /// With one exception that no database can spare its clients: when the connection breaks while
    /// the commit is under way, the chunk may have been done; a second call then finds it so.
    ///
    /// # Cancel safety
    /// A cancelled chunk is done as a whole or not at all, and calling again looks at it again.
    pub async fn next_chunk(&mut self) -> Result<Option<ChunkReport>, DeadLetterError> {
        check_range("the size of a chunk", self.chunk, LARGEST_CHUNK)?;
        if let Which::Filter(filter) = &self.selection.0 {
            filter.check()?;
        }
        while let Some(position) = self.position {
            let side = position.side();
            let numbers = self.candidates(position).await?;
            let Some(&last) = numbers.last() else {
                self.position = match side {
                    Side::Relay => Some(LetterId::new(Side::Inbox, i64::MIN)),
                    Side::Inbox => None,
                };
                continue;
            };
            let outcomes = self.do_chunk(side, &numbers).await?;
            self.position = Some(LetterId::new(side, last));
            self.totals.add(&outcomes);
            return Ok(Some(ChunkReport {
                act: self.act,
                dry_run: self.note.is_none(),
                side,
                outcomes,
                so_far: self.totals,
            }));
        }
        Ok(None)
    }

    /// Does all chunks.
    ///
    /// # Errors
    /// As [`next_chunk`](Self::next_chunk); the chunks before the failed one are done.
    ///
    /// # Cancel safety
    /// Each chunk is done as a whole or not at all. A new run over the same letters does the rest.
    pub async fn finish(mut self) -> Result<Totals, DeadLetterError> {
        while self.next_chunk().await?.is_some() {}
        Ok(self.totals)
    }

    /// The numbers of the next letters of the position's side.
    async fn candidates(&self, position: LetterId) -> Result<Vec<i64>, DeadLetterError> {
        let side = position.side();
        match &self.selection.0 {
            Which::Ids(ids) => {
                let most = usize::try_from(self.chunk).unwrap_or(usize::MAX);
                let behind = ids
                    .iter()
                    .filter(|id| id.side() == side && **id > position)
                    .map(|id| id.number());
                Ok(behind.take(most).collect())
            }
            Which::Filter(filter) if filter.has(side) => {
                let request = LetterRequest {
                    side,
                    after: position.number(),
                    up_to: i64::MAX,
                    limit: i64::from(self.chunk),
                    ids: None,
                    criteria: &self.criteria(),
                };
                let mut connection = self.letters.connection().await?;
                let found = DB::letters(&mut connection, &self.letters.queries, &request)
                    .await
                    .map_err(Error::database("reading dead letters"))?;
                Ok(found.iter().map(|letter| letter.id.number()).collect())
            }
            Which::Filter(_) => Ok(Vec::new()),
        }
    }

    /// Repeats the chunk when the database took it back for another transaction's sake.
    async fn do_chunk(&self, side: Side, numbers: &[i64]) -> Result<Vec<Outcome>, DeadLetterError> {
        let mut tries = 1;
        loop {
            match self.try_chunk(side, numbers).await {
                Err(DeadLetterError::Store(Error::Database { source, .. }))
                    if tries < TRIES && is_serialization_failure(&source) =>
                {
                    tracing::debug!(tries, error = %source, "a chunk of dead letters is tried again");
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    async fn try_chunk(
        &self,
        side: Side,
        numbers: &[i64],
    ) -> Result<Vec<Outcome>, DeadLetterError> {
        let mut transaction = self.letters.outbox.begin_write().await?;
        let outcomes = self
            .look(&mut transaction, side, numbers)
            .await
            .map_err(Error::database("looking at dead letters"))?;
        let done = outcomes.iter().filter(|outcome| outcome.is_done());
        let done: Vec<i64> = done.map(|outcome| outcome.id.number()).collect();
        let Some(note) = self.note.as_ref().filter(|_| !done.is_empty()) else {
            transaction.rollback().await?;
            return Ok(outcomes);
        };
        let note = NoteRow {
            run: self.id,
            operator: note.operator(),
            reason: note.reason(),
        };
        let queries = &self.letters.queries;
        let found = DB::act_on_letters(
            transaction.connection(),
            queries,
            self.act,
            side,
            &done,
            note,
        )
        .await
        .map_err(Error::database("acting on dead letters"))?;
        if usize::try_from(found).ok() != Some(done.len()) {
            transaction.rollback().await?;
            return Err(DeadLetterError::Changed {
                act: self.act.as_str(),
                expected: done.len(),
                found,
            });
        }
        transaction.commit().await?;
        tracing::info!(
            run = %self.id,
            operator = note.operator,
            act = self.act.as_str(),
            side = side.as_str(),
            letters = done.len(),
            "an operator acted on dead letters"
        );
        self.letters.outbox.inner.letters.signal();
        Ok(outcomes)
    }

    /// Locks the letters and says what can be done to each.
    async fn look(
        &self,
        transaction: &mut WriteTransaction<DB>,
        side: Side,
        numbers: &[i64],
    ) -> Result<Vec<Outcome>, sqlx::Error> {
        let queries = &self.letters.queries;
        let connection = transaction.connection();
        let in_work = DB::lock_letters(connection, queries, side, numbers).await?;
        let request = LetterRequest {
            side,
            // They are in order.
            after: numbers
                .first()
                .map_or(i64::MIN, |first| first.saturating_sub(1)),
            up_to: numbers.last().copied().unwrap_or(i64::MAX),
            limit: i64::MAX,
            ids: Some(numbers),
            criteria: &self.criteria(),
        };
        let letters = self.letters.read(connection, &request).await?;
        let blocking: Vec<i64> = letters
            .iter()
            .filter(|letter| letter.state != LetterState::Waiting && letter.behind > 0)
            .map(|letter| letter.id.number())
            .collect();
        let mut behind: HashMap<i64, Vec<LetterId>> = HashMap::new();
        for (number, later) in
            DB::later_letters(connection, queries, side, &blocking, NAMED).await?
        {
            let later = LetterId::new(side, later);
            behind.entry(number).or_default().push(later);
        }
        let mut letters: HashMap<i64, Letter> = letters
            .into_iter()
            .map(|letter| (letter.id.number(), letter))
            .collect();
        let by_id = matches!(self.selection.0, Which::Ids(_));
        let outcomes = numbers.iter().filter_map(|&number| {
            let id = LetterId::new(side, number);
            match letters.remove(&number) {
                Some(letter) => {
                    let refusal = judge(self.act, &letter, in_work.contains(&number));
                    let behind = behind.remove(&number).unwrap_or_default();
                    Some(Outcome {
                        id,
                        letter: Some(Target::new(letter, behind)),
                        refusal,
                    })
                }
                // What only matched a filter before is none of ours.
                None => by_id.then_some(Outcome {
                    id,
                    letter: None,
                    refusal: Some(Refusal::NotFound),
                }),
            }
        });
        Ok(outcomes.collect())
    }

    /// What must hold for the letters; what is discarded is only looked at where it was asked for
    /// by its id.
    fn criteria(&self) -> Criteria {
        match &self.selection.0 {
            Which::Ids(_) => Criteria {
                states: all_states(),
                ..Criteria::default()
            },
            Which::Filter(filter) => Criteria {
                states: filter.criteria.states & !LetterState::Discarded.bit(),
                ..filter.criteria.clone()
            },
        }
    }
}

impl<DB: Backend> fmt::Debug for Run<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("act", &self.act)
            .field("selection", &self.selection)
            .field("note", &self.note)
            .field("id", &self.id)
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}
