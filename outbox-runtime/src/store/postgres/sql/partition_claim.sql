-- $1 group, $2 instance, $3 lease in seconds, $4 of how many partitions, $5 how many.
UPDATE inbox_partition AS own
SET owner = $2, lease_until = clock_timestamp() + $3 * interval '1 second'
FROM (
    SELECT free.partition
    FROM inbox_partition AS free
    WHERE free.consumer_group = $1
        AND free.partition < $4
        AND (free.owner IS NULL OR (free.owner <> $2 AND free.lease_until < clock_timestamp()))
    ORDER BY free.partition
    LIMIT $5
    FOR UPDATE SKIP LOCKED
) AS free
WHERE own.consumer_group = $1 AND own.partition = free.partition
RETURNING own.partition
