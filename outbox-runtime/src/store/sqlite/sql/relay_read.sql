-- ?1 after, ?2 up to, ?3 limit, ?4 shards as bits. Rows of other shards come as a bare id.
SELECT
    log.id,
    log.shard,
    log.wanted,
    CASE WHEN log.wanted THEN log.message_id END,
    CASE WHEN log.wanted THEN log.event_type END,
    CASE WHEN log.wanted THEN log.schema_version END,
    CASE WHEN log.wanted THEN log.aggregate_type END,
    CASE WHEN log.wanted THEN log.aggregate_id END,
    CASE WHEN log.wanted THEN log.sequence END,
    CASE WHEN log.wanted THEN log.correlation_id END,
    CASE WHEN log.wanted THEN log.causation_id END,
    CASE WHEN log.wanted THEN log.producer END,
    CASE WHEN log.wanted THEN log.occurred_at END,
    CASE WHEN log.wanted THEN log.traceparent END,
    CASE WHEN log.wanted THEN log.tracestate END,
    CASE WHEN log.wanted THEN log.headers END,
    CASE WHEN log.wanted THEN log.payload END
FROM (
    SELECT message.*, message.shard IS NULL OR (?4 >> message.shard) & 1 AS wanted
    FROM outbox_message AS message
    WHERE message.id > ?1 AND message.id <= ?2
    ORDER BY message.id
    LIMIT ?3
) AS log
ORDER BY log.id
