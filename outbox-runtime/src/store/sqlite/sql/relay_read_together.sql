-- ?1 after, ?2 up to, ?3 limit, ?4 bytes of payload and headers. The rows of `relay_read_on.sql` as one
-- JSON array of arrays, in the same order of columns: none if they have more bytes than that. Sizes are
-- known without reading the content. Says as well whether there is any row.
SELECT
    EXISTS (SELECT 1 FROM outbox_message AS other WHERE other.id > ?1 AND other.id <= ?2),
    json_group_array(json_array(
        message.id,
        message.shard,
        CASE typeof(message.message_id) WHEN 'blob' THEN hex(message.message_id) END,
        message.event_type,
        message.schema_version,
        message.aggregate_type,
        message.aggregate_id,
        message.sequence,
        message.correlation_id,
        message.causation_id,
        message.producer,
        message.occurred_at,
        message.traceparent,
        message.tracestate,
        message.headers,
        message.payload
    ))
FROM (
    SELECT *
    FROM outbox_message AS log
    WHERE log.id > ?1 AND log.id <= ?2
    ORDER BY log.id
    LIMIT ?3
) AS message
WHERE ?4 >= (
    SELECT total(octet_length(measured.payload) + coalesce(octet_length(measured.headers), 0))
    FROM (
        SELECT look.payload, look.headers
        FROM outbox_message AS look
        WHERE look.id > ?1 AND look.id <= ?2
        ORDER BY look.id
        LIMIT ?3
    ) AS measured
)
