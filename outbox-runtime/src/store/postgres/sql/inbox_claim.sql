-- $1 consumer, $2 idempotency key, $3 message id, $4 event type, $5 lane, NULL for one that may pass.
WITH held AS (
    SELECT EXISTS (SELECT FROM inbox_parked WHERE consumer = $1 AND lane = $5 AND holds) AS is_held
), claimed AS (
    INSERT INTO inbox_message (consumer, idempotency_key, message_id, event_type)
    SELECT $1, $2, $3, $4 FROM held WHERE NOT is_held
    ON CONFLICT (consumer, idempotency_key) DO NOTHING
    RETURNING 1
)
SELECT is_held, EXISTS (SELECT FROM claimed) FROM held
