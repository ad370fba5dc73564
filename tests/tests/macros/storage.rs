//! Aggregates go to both databases and come back as they were.

use async_trait::async_trait;
use outbox_runtime::prelude::*;
use outbox_runtime::{CustomPersistence, RowLock};
use outbox_tests::{Fixture, TestDatabase, on_both_databases};
use sqlx::{Row, Sqlite, SqliteConnection};

use crate::aggregates::{Cache, HttpRequestLog, Product, ProductId};

on_both_databases!(every_kind_of_field, defaults_store_too, many_and_none);

const CATALOGUE: &str = "CREATE TABLE catalogue (
    product_id TEXT PRIMARY KEY, row_version BIGINT NOT NULL, type TEXT NOT NULL, shown_name TEXT,
    tags JSON NOT NULL, price_cents BIGINT NOT NULL, price_cur TEXT NOT NULL, price_parts JSON NOT NULL,
    old_cents BIGINT NOT NULL, old_cur TEXT NOT NULL, old_parts JSON NOT NULL)";

async fn every_kind_of_field<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Product>,
{
    fixture.run_sql(CATALOGUE).await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut product = Product::new("p-1");
    product.list();
    uow.add(&mut product).await.unwrap();
    uow.commit().await.unwrap();

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let id = ProductId::from("p-1".to_owned());
    let mut found: Product = uow.get(&id).await.unwrap();
    assert_eq!(found.root().version(), 1);
    assert_eq!(found.cache, Cache::default());
    assert_eq!((&found.key, &found.r#type), (&product.key, &product.r#type));
    assert_eq!((&found.name, &found.tags), (&product.name, &product.tags));
    assert_eq!(
        (&found.price, &found.old_price),
        (&product.price, &product.old_price)
    );

    found.name = Some("Ünïcode \u{1F469}\u{200D}\u{1F52C}".to_owned());
    found.price.cents = -1;
    found.tags.clear();
    found.list();
    found.unlist();
    uow.save(&mut found).await.unwrap();
    uow.commit().await.unwrap();

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let again: Product = uow.get_for_update(&id).await.unwrap();
    assert_eq!(again.root().version(), 3);
    assert_eq!((&again.name, again.price.cents), (&found.name, -1));
    assert!(again.tags.is_empty());
    uow.rollback().await.unwrap();
    assert_eq!(fixture.events().await, 3);
}

async fn defaults_store_too<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<HttpRequestLog>,
{
    fixture
        .run_sql("CREATE TABLE http_request_log (id BIGINT PRIMARY KEY, version BIGINT NOT NULL)")
        .await;
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut request = HttpRequestLog::new(8);
    uow.add(&mut request).await.unwrap();
    uow.commit().await.unwrap();
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let found: HttpRequestLog = uow.get(&8).await.unwrap();
    assert_eq!((found.id, found.root().version()), (8, 1));
}

async fn many_and_none<DB>(fixture: Fixture<DB>)
where
    DB: TestDatabase + Stores<Product>,
{
    fixture.run_sql(CATALOGUE).await;
    let ids: Vec<_> = ["a", "b", "c"]
        .map(|id| ProductId::from(id.to_owned()))
        .into();
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    for id in &ids[..2] {
        uow.add(&mut Product::new(id.as_inner())).await.unwrap();
    }
    uow.commit().await.unwrap();
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    assert!(uow.find::<Product>(&ids[2]).await.unwrap().is_none());
    let found = uow.get_many::<Product>(&ids[..2]).await.unwrap();
    assert_eq!(found.len(), 2);
}

/// An aggregate over two tables, by hand.
#[aggregate(persistence = custom)]
#[derive(Debug)]
pub struct Basket {
    pub id: i64,
    pub items: Vec<String>,
    root: AggregateRoot,
}

#[async_trait]
impl CustomPersistence<Sqlite> for Basket {
    async fn load(
        connection: &mut SqliteConnection,
        id: &i64,
        _lock: RowLock,
    ) -> Result<Option<Self>, sqlx::Error> {
        let Some(row) = sqlx::query("SELECT version FROM basket WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *connection)
            .await?
        else {
            return Ok(None);
        };
        let items =
            sqlx::query_scalar("SELECT name FROM basket_item WHERE basket = ? ORDER BY place")
                .bind(id)
                .fetch_all(connection)
                .await?;
        Ok(Some(Self {
            id: *id,
            items,
            root: AggregateRoot::at_version(row.try_get(0)?),
        }))
    }

    async fn insert(&self, connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
        let done =
            sqlx::query("INSERT INTO basket (id, version) VALUES (?, ?) ON CONFLICT DO NOTHING")
                .bind(self.id)
                .bind(self.root.version())
                .execute(&mut *connection)
                .await?;
        self.write_items(connection).await?;
        Ok(done.rows_affected() == 1)
    }

    async fn update(
        &self,
        expected_version: i64,
        connection: &mut SqliteConnection,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("UPDATE basket SET version = ? WHERE id = ? AND version = ?")
            .bind(self.root.version())
            .bind(self.id)
            .bind(expected_version)
            .execute(&mut *connection)
            .await?;
        self.write_items(connection).await?;
        Ok(done.rows_affected() == 1)
    }

    async fn delete(
        &self,
        expected_version: i64,
        connection: &mut SqliteConnection,
    ) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("DELETE FROM basket WHERE id = ? AND version = ?")
            .bind(self.id)
            .bind(expected_version)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() == 1)
    }
}

impl Basket {
    async fn write_items(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query("DELETE FROM basket_item WHERE basket = ?")
            .bind(self.id)
            .execute(&mut *connection)
            .await?;
        for (place, name) in (0_i64..).zip(&self.items) {
            sqlx::query("INSERT INTO basket_item (basket, place, name) VALUES (?, ?, ?)")
                .bind(self.id)
                .bind(place)
                .bind(name)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_persistence_by_hand() {
    let fixture = outbox_tests::sqlite().await;
    fixture
        .run_sql(
            "CREATE TABLE basket (id INTEGER PRIMARY KEY, version INTEGER NOT NULL);
             CREATE TABLE basket_item (basket INTEGER, place INTEGER, name TEXT)",
        )
        .await;
    let mut basket = Basket {
        id: 1,
        items: vec!["apple".to_owned()],
        root: AggregateRoot::new(),
    };
    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    uow.add(&mut basket).await.unwrap();
    uow.commit().await.unwrap();

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut found: Basket = uow.get(&1).await.unwrap();
    found.items.push("pear".to_owned());
    uow.save(&mut found).await.unwrap();
    uow.commit().await.unwrap();

    let mut uow = fixture.outbox.begin(MessageContext::new()).await.unwrap();
    let mut found: Basket = uow.get(&1).await.unwrap();
    assert_eq!(found.items, ["apple", "pear"]);
    assert_eq!(found.root().version(), 2);
    uow.remove(&mut found).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(fixture.number("SELECT count(*) FROM basket").await, 0);
}
