-- Who inserts into the log takes this lock before the id, and keeps it until the transaction ends.
SELECT DISTINCT locks.virtualtransaction
FROM pg_catalog.pg_locks AS locks
WHERE locks.locktype = 'relation'
    AND locks.database = (
        SELECT own.oid FROM pg_catalog.pg_database AS own WHERE own.datname = current_database()
    )
    AND locks.relation = $1::regclass
    AND locks.mode = 'RowExclusiveLock'
    AND locks.granted
