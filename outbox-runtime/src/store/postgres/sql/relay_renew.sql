-- $1 instance, $2 lease in seconds.
UPDATE outbox_shard AS shard
SET lease_until = clock_timestamp() + $2 * interval '1 second'
FROM (
    SELECT mine.shard FROM outbox_shard AS mine WHERE mine.owner = $1 ORDER BY mine.shard FOR UPDATE
) AS mine
WHERE shard.shard = mine.shard AND shard.owner = $1
RETURNING shard.shard, shard.epoch, shard.position
