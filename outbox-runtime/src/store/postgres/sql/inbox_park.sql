-- Parks a message that is neither handled nor parked already. $6 is the wait in seconds, $7 the
-- cause of its first failure, NULL for one that only waits behind another.
WITH done AS (
    SELECT EXISTS (
        SELECT FROM inbox_message WHERE consumer = $1 AND idempotency_key = $3
    ) AS is_done
), parked AS (
    INSERT INTO inbox_parked (
        consumer, lane, idempotency_key, state, holds, attempts, next_attempt_at, failing_since,
        last_cause, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
        correlation_id, causation_id, producer, occurred_at, occurred_nanos, traceparent,
        tracestate, headers, payload
    )
    SELECT
        $1, $2, $3, $4, $5, CASE WHEN $7::text IS NULL THEN 0 ELSE 1 END,
        clock_timestamp() + $6::float8 * interval '1 second',
        CASE WHEN $7::text IS NOT NULL THEN clock_timestamp() END, $7::text,
        $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21::text::json, $22
    FROM done
    WHERE NOT is_done
    ON CONFLICT (consumer, message_id) DO NOTHING
    RETURNING id
), attempted AS (
    INSERT INTO inbox_parked_attempt (parked_id, attempt, cause)
    SELECT id, 1, $7::text FROM parked WHERE $7::text IS NOT NULL
)
SELECT is_done, EXISTS (SELECT FROM parked) FROM done
