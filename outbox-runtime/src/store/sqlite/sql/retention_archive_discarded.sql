-- ?1 before which time, ?2 after which id, ?3 up to which.
INSERT INTO outbox_discarded_archive (
    id, side, letter_id, consumer, shard, lane, idempotency_key, attempts, failing_since, parked_at,
    last_cause, causes, discarded_at, message_id, event_type, schema_version, aggregate_type,
    aggregate_id, sequence, correlation_id, causation_id, producer, occurred_at, occurred_nanos,
    traceparent, tracestate, headers, business_key, payload
)
SELECT
    id, side, letter_id, consumer, shard, lane, idempotency_key, attempts, failing_since, parked_at,
    last_cause, causes, discarded_at, message_id, event_type, schema_version, aggregate_type,
    aggregate_id, sequence, correlation_id, causation_id, producer, occurred_at, occurred_nanos,
    traceparent, tracestate, headers, business_key, payload
FROM outbox_discarded AS log
WHERE log.discarded_at < ?1 AND log.id > ?2 AND log.id <= ?3
