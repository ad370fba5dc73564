-- $1 after, $2 up to, $3 limit. For a relay that owns all shards, where no id is missing: nothing but
-- the rows, as quickly as they can be had.
SELECT
    message.id,
    message.shard,
    message.message_id,
    message.event_type,
    message.schema_version,
    message.aggregate_type,
    message.aggregate_id,
    message.sequence,
    message.correlation_id,
    message.causation_id,
    message.producer,
    CASE
        WHEN message.occurred_at BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00'
        THEN message.occurred_at
    END,
    message.traceparent,
    message.tracestate,
    message.headers::text,
    message.payload::text
FROM outbox_message AS message
WHERE message.id > $1 AND message.id <= $2
ORDER BY message.id
LIMIT $3
