-- $1 instance, $2 lease in seconds, $3 how many.
UPDATE outbox_shard AS shard
SET owner = $1, epoch = shard.epoch + 1, lease_until = clock_timestamp() + $2 * interval '1 second'
FROM (
    SELECT free.shard
    FROM outbox_shard AS free
    WHERE free.owner IS NULL OR (free.owner <> $1 AND free.lease_until < clock_timestamp())
    ORDER BY free.shard
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) AS free
WHERE shard.shard = free.shard
RETURNING shard.shard, shard.epoch, shard.position
