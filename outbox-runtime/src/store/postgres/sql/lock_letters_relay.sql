-- $1 ids. A relay parks and settles under the same locks, taken in the same order: until the end of
-- the transaction the letters and their lanes stay as they are.
SELECT own.shard
FROM outbox_shard AS own
WHERE own.shard IN (
    SELECT parked.shard FROM outbox_parked AS parked WHERE parked.id = ANY ($1::bigint[])
)
ORDER BY own.shard
FOR UPDATE
