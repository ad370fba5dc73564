UPDATE outbox_shard AS own
SET owner = ?1, epoch = epoch + 1, lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2
WHERE own.shard IN (
    SELECT free.shard
    FROM outbox_shard AS free
    WHERE free.owner IS NULL
        OR (free.owner <> ?1 AND free.lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER))
    ORDER BY free.shard
    LIMIT ?3
)
RETURNING shard, epoch, position
