-- $1 instance; $2 shards, $3 epochs, $4 positions; $5 to $7 the journal's entry, if any.
WITH journal AS (
    INSERT INTO outbox_journal (instance, from_position, to_position, messages)
    SELECT $1, $5, $6, $7 WHERE $5::bigint IS NOT NULL
)
UPDATE outbox_shard AS shard
SET position = greatest(shard.position, moved.position)
FROM (
    SELECT mine.shard, mine.epoch, given.position
    FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS given (shard, epoch, position)
    JOIN outbox_shard AS mine ON mine.shard = given.shard AND mine.epoch = given.epoch AND mine.owner = $1
    ORDER BY mine.shard
    FOR UPDATE OF mine
) AS moved
WHERE shard.shard = moved.shard AND shard.owner = $1 AND shard.epoch = moved.epoch
RETURNING shard.shard
