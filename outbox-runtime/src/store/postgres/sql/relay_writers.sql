-- $1 the log. Who inserts into it takes this lock before the id, and keeps it until the
-- transaction ends. The transactions' own numbers are taken from the same look at the locks.
WITH locks AS MATERIALIZED (
    SELECT locktype, mode, virtualtransaction, transactionid, database, relation
    FROM pg_catalog.pg_locks
    WHERE granted AND locktype IN ('relation', 'transactionid')
)
SELECT DISTINCT
    writer.virtualtransaction,
    ARRAY(
        SELECT own.transactionid::text::bigint
        FROM locks AS own
        WHERE own.locktype = 'transactionid'
            AND own.mode = 'ExclusiveLock'
            AND own.virtualtransaction = writer.virtualtransaction
        ORDER BY 1
    )
FROM locks AS writer
WHERE writer.locktype = 'relation'
    AND writer.mode = 'RowExclusiveLock'
    AND writer.relation = $1::text::regclass
    AND writer.database = (
        SELECT own.oid FROM pg_catalog.pg_database AS own WHERE own.datname = current_database()
    )
