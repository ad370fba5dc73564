-- ?1 shard, ?2 lane, ?3 how many, ?4 how many bytes of payload and headers.
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
    behind.payload,
    look.bytes
FROM (
    SELECT
        measured.*,
        sum(measured.bytes) OVER (ORDER BY measured.id ROWS UNBOUNDED PRECEDING) AS up_to_here
    FROM (
        SELECT
            waiting.id,
            octet_length(waiting.payload) + coalesce(octet_length(waiting.headers), 0) AS bytes
        FROM outbox_parked AS waiting
        WHERE waiting.shard = ?1 AND waiting.lane = ?2 AND waiting.state = 'waiting'
        ORDER BY waiting.id
        LIMIT ?3
    ) AS measured
) AS look
JOIN outbox_parked AS behind ON behind.id = look.id
WHERE look.up_to_here <= ?4
ORDER BY look.id
