-- ?1 how many rows to look at. Counts those above their shard's position (a row without a shard
-- above any), and says whether all were looked at, the first one's id and age in milliseconds, and
-- how many ids the newest row is above the lowest position.
WITH lowest AS MATERIALIZED (
    SELECT min(position) AS position FROM outbox_shard
),
look AS MATERIALIZED (
    SELECT
        count(*) AS rows,
        count(*) FILTER (WHERE seen.id > coalesce(own.position, 0)) AS pending,
        min(seen.id) FILTER (WHERE seen.id > coalesce(own.position, 0)) AS oldest
    FROM (
        SELECT message.id, message.shard
        FROM outbox_message AS message
        WHERE message.id > (SELECT position FROM lowest)
        ORDER BY message.id
        LIMIT ?1
    ) AS seen
    LEFT JOIN outbox_shard AS own ON own.shard = seen.shard
)
SELECT
    look.pending,
    look.rows >= ?1,
    look.oldest,
    max(CAST(unixepoch('subsec') * 1000 AS INTEGER) - CAST(oldest.occurred_at AS INTEGER), 0),
    max(coalesce((SELECT max(message.id) FROM outbox_message AS message), 0) - lowest.position, 0)
FROM look
CROSS JOIN lowest
LEFT JOIN outbox_message AS oldest ON oldest.id = look.oldest
