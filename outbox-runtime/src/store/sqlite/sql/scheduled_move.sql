-- ?1 now, ?2 how many; scheduled_moved.sql then removes the same rows in the same transaction.
INSERT INTO outbox_message (
    shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    correlation_id, causation_id, producer, occurred_at, traceparent, tracestate, headers,
    business_key, payload
)
SELECT
    shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    correlation_id, causation_id, producer, max(due_at, occurred_at), traceparent, tracestate, headers,
    business_key, payload
FROM outbox_scheduled
WHERE due_at <= ?1
ORDER BY due_at, id
LIMIT ?2
ON CONFLICT DO NOTHING
