-- $6 is the wait in milliseconds, $7 the cause of the first failure, NULL for a message that only
-- waits behind another.
INSERT INTO inbox_parked (
    consumer, lane, idempotency_key, state, holds, attempts, next_attempt_at, failing_since,
    last_cause, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    correlation_id, causation_id, producer, occurred_at, occurred_nanos, traceparent,
    tracestate, headers, payload
)
VALUES (
    $1, $2, $3, $4, $5, $7 IS NOT NULL,
    CAST(unixepoch('subsec') * 1000 AS INTEGER) + $6,
    CASE WHEN $7 IS NOT NULL THEN CAST(unixepoch('subsec') * 1000 AS INTEGER) END, $7,
    $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22
)
ON CONFLICT (consumer, message_id) DO NOTHING
RETURNING id
