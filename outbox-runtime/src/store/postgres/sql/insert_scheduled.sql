-- $16 when each is due, or $17 in how many seconds. Fails on purpose when a business key is stored.
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
    e.payload::json, $10, $11, $12, $13, $14, $15::json
FROM unnest(
    $1::smallint[], $2::uuid[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::bigint[],
    $8::text[], $9::text[], $16::timestamptz[], $17::double precision[]
) WITH ORDINALITY AS e (
    shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
    business_key, payload, due_at, due_after, place
)
