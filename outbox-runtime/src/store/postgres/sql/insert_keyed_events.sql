-- As insert_events.sql; fails on purpose when a business key is scheduled. The cast needs the row,
-- so it can't be folded while planning.
INSERT INTO outbox_message (
    shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    business_key, payload, correlation_id, causation_id, producer, traceparent, tracestate, headers
)
SELECT
    e.shard, e.message_id, e.event_type, e.schema_version, e.aggregate_type, e.aggregate_id, e.sequence,
    CASE WHEN e.business_key IS NOT NULL AND EXISTS (
        SELECT 1
        FROM outbox_scheduled AS scheduled
        WHERE scheduled.event_type COLLATE "C" = e.event_type AND scheduled.business_key = e.business_key
    ) THEN CAST('outbox-duplicate:' || e.place::text AS bigint)::text ELSE e.business_key END,
    e.payload::json,
    e.correlation_id, e.causation_id, e.producer, e.traceparent, e.tracestate, e.headers::json
