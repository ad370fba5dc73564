use sqlx::{AssertSqlSafe, Postgres};

use crate::store::{Claim, Error, InboxStore, Names};

impl InboxStore for Postgres {
    fn claim_sql(names: &Names) -> String {
        names.render(include_str!("sql/inbox_claim.sql"))
    }

    async fn claim(
        connection: &mut sqlx::PgConnection,
        sql: &str,
        claim: Claim<'_>,
    ) -> Result<bool, Error> {
        let result = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .bind(claim.consumer)
            .bind(claim.idempotency_key)
            .bind(claim.metadata.message_id.as_uuid())
            .bind(claim.metadata.event_type.as_str())
            .execute(connection)
            .await
            .map_err(Error::database("claiming a message in the inbox"))?;
        Ok(result.rows_affected() == 1)
    }
}
