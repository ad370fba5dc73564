INSERT INTO outbox_scheduled (
    due_at, shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    business_key, payload, correlation_id, causation_id, producer, traceparent, tracestate, headers
)
VALUES
