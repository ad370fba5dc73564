-- ?1 id, ?2 shard, ?3 lane, ?4 state, ?5 milliseconds to the next attempt, ?6 cause.
-- Who waits behind nobody is the head.
INSERT INTO outbox_parked (
    id, shard, lane, state, attempts, next_attempt_at, failing_since, last_cause,
    message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    correlation_id, causation_id, producer, occurred_at, traceparent, tracestate, headers,
    business_key, payload
)
SELECT
    ?1,
    ?2,
    ?3,
    CASE WHEN place.is_alone THEN 'failing' ELSE ?4 END,
    ?6 IS NOT NULL,
    CAST(unixepoch('subsec') * 1000 AS INTEGER) + CASE WHEN place.is_alone THEN 0 ELSE ?5 END,
    CASE WHEN ?6 IS NOT NULL THEN CAST(unixepoch('subsec') * 1000 AS INTEGER) END,
    ?6,
    message.message_id, message.event_type, message.schema_version, message.aggregate_type,
    message.aggregate_id, message.sequence, message.correlation_id, message.causation_id,
    message.producer, message.occurred_at, message.traceparent, message.tracestate,
    message.headers, message.business_key, message.payload
FROM outbox_message AS message
CROSS JOIN (
    SELECT
        ?4 = 'waiting'
        AND NOT EXISTS (
            SELECT 1 FROM outbox_parked AS parked WHERE parked.shard = ?2 AND parked.lane = ?3
        ) AS is_alone
) AS place
WHERE message.id = ?1
ON CONFLICT (id) DO UPDATE
SET lane = excluded.lane, state = excluded.state, attempts = excluded.attempts,
    next_attempt_at = excluded.next_attempt_at, failing_since = excluded.failing_since,
    last_cause = excluded.last_cause
WHERE excluded.attempts > 0
