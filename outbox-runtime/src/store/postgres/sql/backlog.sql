-- $1 how many rows to look at. Counts those above their shard's position (a row without a shard
-- above any), and says whether all were looked at, the first one's id and age in seconds, and how
-- many ids the newest row is above the lowest position.
WITH lowest AS MATERIALIZED (
    SELECT min(every.position) AS position FROM outbox_shard AS every
),
look AS MATERIALIZED (
    SELECT
        count(*) AS rows,
        count(*) FILTER (WHERE seen.id > coalesce(own.position, 0)) AS pending,
        min(seen.id) FILTER (WHERE seen.id > coalesce(own.position, 0)) AS oldest
    FROM (
        SELECT message.id, message.shard
        FROM outbox_message AS message
        WHERE message.id > (SELECT lowest.position FROM lowest)
        ORDER BY message.id
        LIMIT $1
    ) AS seen
    LEFT JOIN outbox_shard AS own ON own.shard = seen.shard
)
SELECT
    look.pending,
    look.rows >= $1,
    look.oldest,
    CASE
        WHEN oldest.occurred_at BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00'
        THEN greatest(extract(epoch FROM clock_timestamp() - oldest.occurred_at), 0)::float8
        ELSE 0
    END,
    greatest((SELECT max(message.id) FROM outbox_message AS message) - lowest.position, 0)
FROM look
CROSS JOIN lowest
LEFT JOIN outbox_message AS oldest ON oldest.id = look.oldest
