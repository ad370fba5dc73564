-- e.column stands for what an event has there: an argument that all events share, or the value of
-- its row in unnest(...) AS e, which then follows.
INSERT INTO outbox_message (
    shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    business_key, payload, correlation_id, causation_id, producer, traceparent, tracestate, headers
)
SELECT
    e.shard, e.message_id, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id, e.sequence,
    e.business_key, e.payload::json,
    e.correlation_id, e.causation_id, e.producer, e.traceparent, e.tracestate, e.headers::json
