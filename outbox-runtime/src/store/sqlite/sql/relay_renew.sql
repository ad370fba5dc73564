UPDATE outbox_shard
SET lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2
WHERE owner = ?1
RETURNING shard, epoch, position
