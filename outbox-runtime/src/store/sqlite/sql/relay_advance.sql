-- ?1 instance, ?2 [[shard, epoch, position], ...].
UPDATE outbox_shard AS own
SET position = max(own.position, moved.position)
FROM (
    SELECT value ->> 0 AS shard, value ->> 1 AS epoch, value ->> 2 AS position FROM json_each(?2)
) AS moved
WHERE own.shard = moved.shard AND own.epoch = moved.epoch AND own.owner = ?1
RETURNING shard
