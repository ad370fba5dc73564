-- As insert_events.sql, with e.due_at when each is due, or e.due_after in how many seconds. Fails on
-- purpose when a business key is stored.
INSERT INTO outbox_scheduled (
    due_at, shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    business_key, payload, correlation_id, causation_id, producer, traceparent, tracestate, headers
)
SELECT
    coalesce(e.due_at, clock_timestamp() + e.due_after * interval '1 second'),
    e.shard, e.message_id, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id, e.sequence,
    CASE WHEN e.business_key IS NOT NULL AND EXISTS (
        SELECT 1
        FROM outbox_message AS message
        WHERE message.event_type COLLATE "C" = e.event_type AND message.business_key = e.business_key
    ) THEN CAST('outbox-duplicate:' || e.place::text AS bigint)::text ELSE e.business_key END,
    e.payload::json,
    e.correlation_id, e.causation_id, e.producer, e.traceparent, e.tracestate, e.headers::json
