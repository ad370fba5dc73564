use async_trait::async_trait;
use outbox_runtime::prelude::*;
use outbox_runtime::{CustomPersistence, Error, RowLock};
use sqlx::{PgConnection, Postgres};

typed_id! { pub struct BasketId(i64); }

#[domain_event(version = 1)]
pub struct ItemAdded {
    pub basket_id: BasketId,
    pub item: String,
}

/// An aggregate over two tables, mapped by hand.
#[aggregate(persistence = custom, events(ItemAdded))]
pub struct Basket {
    id: BasketId,
    items: Vec<String>,
    root: AggregateRoot,
}

impl Basket {
    fn put(&mut self, item: &str) {
        self.items.push(item.to_owned());
        self.raise(ItemAdded {
            basket_id: self.id.clone(),
            item: item.to_owned(),
        });
    }

    async fn write_items(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query("DELETE FROM basket_item WHERE basket = $1")
            .bind(&self.id)
            .execute(&mut *connection)
            .await?;
        sqlx::query("INSERT INTO basket_item SELECT $1, item FROM unnest($2::text[]) AS item")
            .bind(&self.id)
            .bind(&self.items)
            .execute(connection)
            .await
            .map(drop)
    }
}

#[async_trait]
impl CustomPersistence<Postgres> for Basket {
    async fn load(
        connection: &mut PgConnection,
        id: &BasketId,
        _lock: RowLock,
    ) -> Result<Option<Self>, sqlx::Error> {
        let version: Option<i64> = sqlx::query_scalar("SELECT version FROM basket WHERE id = $1")
            .bind(id)
            .fetch_optional(&mut *connection)
            .await?;
        let Some(version) = version else {
            return Ok(None);
        };
        let items = sqlx::query_scalar("SELECT item FROM basket_item WHERE basket = $1")
            .bind(id)
            .fetch_all(connection)
            .await?;
        Ok(Some(Self {
            id: id.clone(),
            items,
            root: AggregateRoot::at_version(version),
        }))
    }

    async fn insert(&self, connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("INSERT INTO basket VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind(&self.id)
            .bind(self.root.version())
            .execute(&mut *connection)
            .await?;
        self.write_items(connection).await?;
        Ok(done.rows_affected() == 1)
    }

    async fn update(
        &self,
        expected_version: i64,
        connection: &mut PgConnection,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("UPDATE basket SET version = $2 WHERE id = $1 AND version = $3")
            .bind(&self.id)
            .bind(self.root.version())
            .bind(expected_version)
            .execute(&mut *connection)
            .await?;
        self.write_items(connection).await?;
        Ok(done.rows_affected() == 1)
    }

    async fn delete(
        &self,
        expected_version: i64,
        connection: &mut PgConnection,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("DELETE FROM basket WHERE id = $1 AND version = $2")
            .bind(&self.id)
            .bind(expected_version)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() == 1)
    }
}

#[tokio::test]
async fn an_aggregate_mapped_by_hand_commits_with_its_events() {
    let Some(fixture) = outbox_tests::postgres().await else {
        return;
    };
    fixture
        .run_sql(
            "CREATE TABLE basket (id bigint PRIMARY KEY, version bigint NOT NULL);
             CREATE TABLE basket_item (basket bigint NOT NULL, item text NOT NULL)",
        )
        .await;
    let id = BasketId::from(1);
    let outbox = &fixture.outbox;

    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    let mut basket = Basket {
        id: id.clone(),
        items: Vec::new(),
        root: AggregateRoot::new(),
    };
    basket.put("tea");
    uow.add(&mut basket).await.unwrap();
    uow.commit().await.unwrap();

    let mut uow = outbox.begin(MessageContext::new()).await.unwrap();
    let mut basket = uow.get::<Basket>(&id).await.unwrap();
    let mut rival = outbox.begin(MessageContext::new()).await.unwrap();
    let mut same = rival.get::<Basket>(&id).await.unwrap();
    basket.put("milk");
    uow.save(&mut basket).await.unwrap();
    uow.commit().await.unwrap();

    same.put("salt");
    let error = rival.save(&mut same).await.unwrap_err();
    assert!(error.is_version_conflict(), "{error:?}");
    let error = rival.commit().await.unwrap_err();
    assert!(matches!(error, Error::MustRollBack), "{error:?}");

    assert_eq!(fixture.number("SELECT count(*) FROM basket_item").await, 2);
    assert_eq!(fixture.events().await, 2);
}
