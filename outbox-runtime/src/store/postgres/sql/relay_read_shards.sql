-- $1 after, $2 up to, $3 how many rows to look at, $4 shards as bits. As relay_read_on.sql for some
-- shards: rows of others are looked at and not sent. The row without a shard and without a message
-- says how many rows were looked at, which id was the last, and between which ids there are none. One
-- statement, so one snapshot.
WITH look AS MATERIALIZED (
    SELECT count(*) AS rows, max(page.id) AS last
    FROM (
        SELECT message.id
        FROM outbox_message AS message
        WHERE message.id > $1 AND message.id <= $2
        ORDER BY message.id
        LIMIT $3
    ) AS page
)
SELECT
    look.last AS id,
    NULL::smallint AS shard,
    NULL::uuid,
    NULL::text,
    NULL::integer,
    NULL::text,
    NULL::text,
    NULL::bigint,
    NULL::text,
    NULL::text,
    NULL::text,
    NULL::timestamptz,
    NULL::text,
    NULL::text,
    NULL::text,
    NULL::text,
    look.rows,
    CASE WHEN look.rows < look.last - $1 THEN ARRAY(
        SELECT unnest(ARRAY[near.before + 1, near.id - 1])
        FROM (
            SELECT message.id, lag(message.id, 1, $1) OVER (ORDER BY message.id) AS before
            FROM outbox_message AS message
            WHERE message.id > $1 AND message.id <= look.last
        ) AS near
        WHERE near.id > near.before + 1
        ORDER BY near.id
    ) END
FROM look
UNION ALL
(
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
        message.payload::text,
        NULL::bigint,
        NULL::bigint[]
    FROM outbox_message AS message
    WHERE message.id > $1
        AND message.id <= (SELECT look.last FROM look)
        AND (message.shard IS NULL OR ($4::bigint >> message.shard::integer) & 1 = 1)
    ORDER BY message.id
)
