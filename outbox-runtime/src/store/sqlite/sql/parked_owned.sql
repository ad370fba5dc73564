-- ?1 instance, ?2 [[shard, epoch], ...]: those that it owns.
SELECT own.shard
FROM outbox_shard AS own
WHERE own.owner = ?1
    AND EXISTS (
        SELECT 1
        FROM json_each(?2) AS given
        WHERE given.value ->> 0 = own.shard AND given.value ->> 1 = own.epoch
    )
