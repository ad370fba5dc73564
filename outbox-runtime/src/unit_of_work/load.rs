use std::collections::HashMap;

use super::work::UnitOfWork;
use crate::domain::Aggregate;
use crate::store::{Backend, Error, RowLock, Stores};

/// Ids of one query: databases limit the arguments of a statement.
const IDS_PER_QUERY: usize = 1_000;

/// Loading aggregates.
impl<DB: Backend> UnitOfWork<'_, DB> {
    /// Loads an aggregate that must exist.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist, [`Error::Database`] when the load fails.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn get<A: Aggregate>(&mut self, id: &A::Id) -> Result<A, Error>
    where
        DB: Stores<A>,
    {
        self.find(id).await?.ok_or_else(|| not_found::<A>(id))
    }

    /// Loads an aggregate that may be missing.
    ///
    /// # Errors
    /// [`Error::Database`] when the load fails.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn find<A: Aggregate>(&mut self, id: &A::Id) -> Result<Option<A>, Error>
    where
        DB: Stores<A>,
    {
        let found = self.load(std::slice::from_ref(id), RowLock::None).await?;
        Ok(found.into_iter().next())
    }

    /// Loads an aggregate that must exist and locks its row until the transaction ends.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist, [`Error::Database`] when the load fails.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn get_for_update<A: Aggregate>(&mut self, id: &A::Id) -> Result<A, Error>
    where
        DB: Stores<A>,
    {
        self.find_for_update(id)
            .await?
            .ok_or_else(|| not_found::<A>(id))
    }

    /// Loads an aggregate that may be missing and locks its row until the transaction ends.
    ///
    /// # Errors
    /// [`Error::Database`] when the load fails.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn find_for_update<A: Aggregate>(&mut self, id: &A::Id) -> Result<Option<A>, Error>
    where
        DB: Stores<A>,
    {
        let found = self
            .load(std::slice::from_ref(id), RowLock::ForUpdate)
            .await?;
        Ok(found.into_iter().next())
    }

    /// Loads several aggregates that must all exist, in the order of `ids`, with one query for
    /// up to 1,000.
    ///
    /// The ids must be distinct: an aggregate is handed out once.
    ///
    /// # Errors
    /// [`Error::NotFound`] for the first that does not exist, [`Error::Database`] when the load fails.
    ///
    /// # Cancel safety
    /// See [`UnitOfWork`].
    pub async fn get_many<A: Aggregate>(&mut self, ids: &[A::Id]) -> Result<Vec<A>, Error>
    where
        DB: Stores<A>,
    {
        let mut found: HashMap<String, A> = self
            .load(ids, RowLock::None)
            .await?
            .into_iter()
            .map(|aggregate: A| (aggregate.id().to_string(), aggregate))
            .collect();
        ids.iter()
            .map(|id| {
                found
                    .remove(&id.to_string())
                    .ok_or_else(|| not_found::<A>(id))
            })
            .collect()
    }

    async fn load<A: Aggregate>(&mut self, ids: &[A::Id], lock: RowLock) -> Result<Vec<A>, Error>
    where
        DB: Stores<A>,
    {
        if ids.iter().any(|id| self.stage.holds::<A>(&id.to_string())) {
            self.flush().await?;
        }
        self.enter()?;
        if <DB as Stores<A>>::table().is_none() {
            // SQL of the user's own, which may have swallowed a failure.
            self.lent = self.session.in_transaction() || lock == RowLock::ForUpdate;
        }
        let connection = match lock {
            RowLock::None => self.session.reader(&self.outbox).await?,
            RowLock::ForUpdate => self.session.writer(&self.outbox).await?,
        };
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_PER_QUERY) {
            let loaded = <DB as Stores<A>>::load(connection, some, lock)
                .await
                .map_err(Error::database("loading an aggregate"))?;
            found.extend(loaded);
        }
        for aggregate in &found {
            self.stage.watch(aggregate);
        }
        self.broken = false;
        Ok(found)
    }
}

fn not_found<A: Aggregate>(id: &A::Id) -> Error {
    Error::NotFound {
        aggregate_type: A::TYPE,
        aggregate_id: id.to_string(),
    }
}
