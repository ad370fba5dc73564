-- $1 age in seconds, $2 how many of the newest stay, $3 how many at most.
WITH old AS MATERIALIZED (
    SELECT message.consumer, message.idempotency_key
    FROM inbox_message AS message
    WHERE message.processed_at < statement_timestamp() - $1 * interval '1 second'
        AND ($2 = 0 OR message.processed_at < (
            SELECT newest.processed_at
            FROM inbox_message AS newest
            ORDER BY newest.processed_at DESC
            OFFSET greatest($2 - 1, 0)
            LIMIT 1
        ))
    ORDER BY message.processed_at
    LIMIT $3
    FOR UPDATE OF message SKIP LOCKED
),
gone AS (
    DELETE FROM inbox_message AS message
    USING old
    WHERE message.consumer = old.consumer AND message.idempotency_key = old.idempotency_key
    RETURNING message.*
),
kept AS (
    INSERT INTO inbox_message_archive (consumer, idempotency_key, message_id, event_type, processed_at)
    SELECT consumer, idempotency_key, message_id, event_type, processed_at FROM gone
)
SELECT count(*) FROM gone
