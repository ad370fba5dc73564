-- ?1 before which time, ?2 after which id, ?3 up to which.
INSERT INTO outbox_message_archive (
    id, shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence, correlation_id,
    causation_id, producer, occurred_at, traceparent, tracestate, headers, business_key, payload
)
SELECT
    id, shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence, correlation_id,
    causation_id, producer, occurred_at, traceparent, tracestate, headers, business_key, payload
FROM outbox_message
WHERE occurred_at < ?1 AND id > ?2 AND id <= ?3
