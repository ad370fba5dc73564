-- $1 ids, $2 run, $3 operator, $4 reason. Says how many were discarded.
WITH gone AS (
    DELETE FROM inbox_parked AS parked WHERE parked.id = ANY ($1::bigint[]) RETURNING parked.*
),
kept AS (
    INSERT INTO outbox_discarded (
        side, letter_id, consumer, shard, lane, idempotency_key, attempts, failing_since, parked_at,
        last_cause, causes, message_id, event_type, schema_version, aggregate_type, aggregate_id,
        sequence, correlation_id, causation_id, producer, occurred_at, occurred_nanos, traceparent,
        tracestate, headers, business_key, payload
    )
    SELECT
        'inbox', gone.id, gone.consumer, NULL::smallint, gone.lane, gone.idempotency_key, gone.attempts, gone.failing_since,
        gone.parked_at, gone.last_cause,
        (
            SELECT coalesce(json_agg(json_build_object(
                'attempt', attempt.attempt,
                'failed_at', to_char(attempt.failed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                'cause', attempt.cause
            ) ORDER BY attempt.id), '[]')
            FROM inbox_parked_attempt AS attempt
            WHERE attempt.parked_id = gone.id
        ),
        gone.message_id, gone.event_type, gone.schema_version, gone.aggregate_type,
        gone.aggregate_id, gone.sequence, gone.correlation_id, gone.causation_id, gone.producer,
        gone.occurred_at, gone.occurred_nanos, gone.traceparent, gone.tracestate, gone.headers, NULL,
        gone.payload
    FROM gone
    ORDER BY gone.id
),
noted AS (
    INSERT INTO outbox_operator_note (
        run, act, side, letter_id, consumer, message_id, event_type, operator, reason
    )
    SELECT $2, 'discard', 'inbox', gone.id, gone.consumer, gone.message_id, gone.event_type, $3, $4
    FROM gone
    ORDER BY gone.id
)
SELECT count(*) FROM gone
