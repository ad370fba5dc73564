-- $1 after, $2 up to, $3 and $4 first and last ids of the gaps, $5 limit, $6 shards as bits,
-- $7 whether to say which transactions were in progress, $8 bytes of payload and headers, $9 whether
-- the first row that has any may have more.
-- One statement, so one snapshot: the order of what it returns is the order of commits within
-- each aggregate. Rows of other shards come as a bare id, and so does the row that exceeds the bytes,
-- which is the last one then. What is not compressed tells its size without being read. A time that
-- no calendar of ours holds (`infinity` is one) comes as none.
SELECT
    log.id,
    log.shard,
    log.wanted,
    CASE WHEN log.sent THEN log.message_id END,
    CASE WHEN log.sent THEN log.event_type END,
    CASE WHEN log.sent THEN log.schema_version END,
    CASE WHEN log.sent THEN log.aggregate_type END,
    CASE WHEN log.sent THEN log.aggregate_id END,
    CASE WHEN log.sent THEN log.sequence END,
    CASE WHEN log.sent THEN log.correlation_id END,
    CASE WHEN log.sent THEN log.causation_id END,
    CASE WHEN log.sent THEN log.producer END,
    CASE
        WHEN log.sent
            AND log.occurred_at BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00'
        THEN log.occurred_at
    END,
    CASE WHEN log.sent THEN log.traceparent END,
    CASE WHEN log.sent THEN log.tracestate END,
    CASE WHEN log.sent THEN log.headers::text END,
    CASE WHEN log.sent THEN log.payload::text END,
    CASE WHEN $7::boolean THEN (SELECT pg_current_snapshot()::text) END,
    log.bytes::bigint,
    log.up_to_here
FROM (
    SELECT
        counted.*,
        counted.wanted AND (counted.up_to_here <= $8 OR $9 AND counted.up_to_here = counted.bytes) AS sent
    FROM (
        SELECT
            measured.*,
            sum(measured.bytes) OVER (ORDER BY measured.id ROWS UNBOUNDED PRECEDING) AS up_to_here
        FROM (
            SELECT
                log.*,
                CASE
                    WHEN NOT log.wanted THEN 0
                    WHEN pg_column_compression(log.payload) IS NULL THEN pg_column_size(log.payload)
                    ELSE octet_length(log.payload::text)
                END
                + CASE WHEN log.wanted THEN coalesce(octet_length(log.headers::text), 0) ELSE 0 END
                AS bytes
            FROM (
                SELECT picked.*, picked.shard IS NULL OR ($6::bigint >> picked.shard::integer) & 1 = 1 AS wanted
                FROM (
                    SELECT in_gap.*
                    FROM unnest($3::bigint[], $4::bigint[]) AS gap (first_id, last_id)
                    CROSS JOIN LATERAL (
                        SELECT *
                        FROM outbox_message AS message
                        WHERE message.id BETWEEN gap.first_id AND gap.last_id
                        ORDER BY message.id
                        LIMIT $5
                    ) AS in_gap
                    UNION ALL
                    (
                        SELECT *
                        FROM outbox_message AS message
                        WHERE message.id > $1 AND message.id <= $2
                        ORDER BY message.id
                        LIMIT $5
                    )
                ) AS picked
                ORDER BY picked.id
                LIMIT $5
            ) AS log
        ) AS measured
    ) AS counted
    WHERE counted.up_to_here - counted.bytes <= $8
) AS log
ORDER BY log.id
