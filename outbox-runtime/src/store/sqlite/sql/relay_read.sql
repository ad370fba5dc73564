-- ?1 after, ?2 up to, ?3 limit, ?4 shards as bits, ?5 bytes of payload and headers, ?6 whether the
-- first row that has any may have more. Rows of other shards come as a bare id, and so does the row
-- that exceeds the bytes, which is the last one. Sizes are known without reading the content.
SELECT
    look.id,
    look.shard,
    look.wanted,
    CASE WHEN look.sent THEN log.message_id END,
    CASE WHEN look.sent THEN log.event_type END,
    CASE WHEN look.sent THEN log.schema_version END,
    CASE WHEN look.sent THEN log.aggregate_type END,
    CASE WHEN look.sent THEN log.aggregate_id END,
    CASE WHEN look.sent THEN log.sequence END,
    CASE WHEN look.sent THEN log.correlation_id END,
    CASE WHEN look.sent THEN log.causation_id END,
    CASE WHEN look.sent THEN log.producer END,
    CASE WHEN look.sent THEN log.occurred_at END,
    CASE WHEN look.sent THEN log.traceparent END,
    CASE WHEN look.sent THEN log.tracestate END,
    CASE WHEN look.sent THEN log.headers END,
    CASE WHEN look.sent THEN log.payload END,
    look.bytes,
    look.up_to_here
FROM (
    SELECT
        counted.*,
        counted.wanted AND (counted.up_to_here <= ?5 OR ?6 AND counted.up_to_here = counted.bytes) AS sent
    FROM (
        SELECT
            measured.*,
            sum(measured.bytes) OVER (ORDER BY measured.id ROWS UNBOUNDED PRECEDING) AS up_to_here
        FROM (
            SELECT
                message.id,
                message.shard,
                message.shard IS NULL OR (?4 >> message.shard) & 1 AS wanted,
                CASE
                    WHEN message.shard IS NULL OR (?4 >> message.shard) & 1
                    THEN octet_length(message.payload) + coalesce(octet_length(message.headers), 0)
                    ELSE 0
                END AS bytes
            FROM outbox_message AS message
            WHERE message.id > ?1 AND message.id <= ?2
            ORDER BY message.id
            LIMIT ?3
        ) AS measured
    ) AS counted
    WHERE counted.up_to_here - counted.bytes <= ?5
) AS look
JOIN outbox_message AS log ON log.id = look.id
ORDER BY look.id
