-- Takes a due row out; the caller's rollback puts it back.
DELETE FROM inbox_parked
WHERE id = (
    SELECT id
    FROM inbox_parked AS mine
    WHERE mine.id = $1
        AND mine.state <> 'dead'
        AND mine.next_attempt_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
        AND NOT (mine.holds AND EXISTS (
            SELECT 1 FROM inbox_parked AS ahead
            WHERE ahead.consumer = mine.consumer
                AND ahead.lane = mine.lane
                AND ahead.holds
                AND ahead.id < mine.id
        ))
)
RETURNING
    consumer, attempts,
    coalesce(CAST(unixepoch('subsec') * 1000 AS INTEGER) - failing_since, 0),
    message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    correlation_id, causation_id, producer, occurred_at, occurred_nanos, traceparent, tracestate,
    headers, payload
