-- ?1 shard, ?2 lane, ?3 how many.
SELECT
    behind.id,
    behind.shard,
    behind.lane,
    behind.attempts,
    NULL,
    behind.message_id,
    behind.event_type,
    behind.schema_version,
    behind.aggregate_type,
    behind.aggregate_id,
    behind.sequence,
    behind.correlation_id,
    behind.causation_id,
    behind.producer,
    behind.occurred_at,
    behind.traceparent,
    behind.tracestate,
    behind.headers,
    behind.payload
FROM outbox_parked AS behind
WHERE behind.shard = ?1 AND behind.lane = ?2 AND behind.state = 'waiting'
ORDER BY behind.id
LIMIT ?3
