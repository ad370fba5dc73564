-- ?1 shards as bits, ?2 how many lanes.
SELECT
    due.id,
    due.shard,
    due.lane,
    due.attempts,
    CASE
        WHEN due.attempts > 0
            THEN max(unixepoch('subsec') - due.failing_since / 1000.0, 0.0)
    END,
    due.message_id,
    due.event_type,
    due.schema_version,
    due.aggregate_type,
    due.aggregate_id,
    due.sequence,
    due.correlation_id,
    due.causation_id,
    due.producer,
    due.occurred_at,
    due.traceparent,
    due.tracestate,
    due.headers,
    due.payload
FROM outbox_parked AS due
WHERE due.state = 'failing'
    AND due.next_attempt_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
    AND (?1 >> due.shard) & 1
ORDER BY due.next_attempt_at
LIMIT ?2
