-- Takes a due row out; the caller's rollback puts it back. Another instance's row is left to it.
DELETE FROM inbox_parked
WHERE id = (
    SELECT id
    FROM inbox_parked AS mine
    WHERE mine.id = $1
        AND mine.state <> 'dead'
        AND mine.next_attempt_at <= clock_timestamp()
        AND NOT (mine.holds AND EXISTS (
            SELECT FROM inbox_parked AS ahead
            WHERE ahead.consumer = mine.consumer
                AND ahead.lane = mine.lane
                AND ahead.holds
                AND ahead.id < mine.id
        ))
    FOR UPDATE SKIP LOCKED
)
RETURNING
    consumer, attempts,
    coalesce(extract(epoch FROM clock_timestamp() - failing_since), 0)::float8,
    message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    correlation_id, causation_id, producer, occurred_at, occurred_nanos, traceparent, tracestate,
    headers::text, payload
