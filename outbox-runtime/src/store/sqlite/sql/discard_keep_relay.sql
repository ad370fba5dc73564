-- ?1 ids as JSON.
INSERT INTO outbox_discarded (
    side, letter_id, consumer, shard, lane, idempotency_key, attempts, failing_since, parked_at,
    last_cause, causes, message_id, event_type, schema_version, aggregate_type, aggregate_id,
    sequence, correlation_id, causation_id, producer, occurred_at, occurred_nanos, traceparent,
    tracestate, headers, business_key, payload
)
SELECT
    'relay', parked.id, '', parked.shard, parked.lane, NULL, parked.attempts,
    parked.failing_since, parked.parked_at, parked.last_cause,
    (
        SELECT json_group_array(json_object(
            'attempt', attempt.attempt,
            'failed_at',
            strftime('%Y-%m-%dT%H:%M:%S', attempt.failed_at / 1000, 'unixepoch')
                || printf('.%03dZ', attempt.failed_at % 1000),
            'cause', attempt.cause
        ))
        FROM (SELECT * FROM outbox_parked_attempt AS kept WHERE kept.parked_id = parked.id ORDER BY kept.id) AS attempt
    ),
    parked.message_id, parked.event_type, parked.schema_version, parked.aggregate_type,
    parked.aggregate_id, parked.sequence, parked.correlation_id, parked.causation_id,
    parked.producer, parked.occurred_at, NULL, parked.traceparent, parked.tracestate,
    parked.headers, parked.business_key, parked.payload
FROM outbox_parked AS parked
WHERE parked.id IN (SELECT value FROM json_each(?1))
ORDER BY parked.id
