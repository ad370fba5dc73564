-- ?1 shards as bits, ?2 how many lanes, ?3 how many bytes of payload and headers, of the first any.
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
    due.payload,
    look.bytes
FROM (
    SELECT
        measured.*,
        sum(measured.bytes) OVER (
            ORDER BY measured.next_attempt_at, measured.id ROWS UNBOUNDED PRECEDING
        ) AS up_to_here
    FROM (
        SELECT
            head.id,
            head.next_attempt_at,
            octet_length(head.payload) + coalesce(octet_length(head.headers), 0) AS bytes
        FROM outbox_parked AS head
        WHERE head.state = 'failing'
            AND head.next_attempt_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
            AND (?1 >> head.shard) & 1
        ORDER BY head.next_attempt_at, head.id
        LIMIT ?2
    ) AS measured
) AS look
JOIN outbox_parked AS due ON due.id = look.id
WHERE look.up_to_here <= ?3 OR look.up_to_here = look.bytes
ORDER BY look.next_attempt_at, look.id
