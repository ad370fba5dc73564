-- $1 group, $2 instance, $3 lease in seconds.
UPDATE inbox_partition AS own
SET lease_until = clock_timestamp() + $3 * interval '1 second'
FROM (
    SELECT mine.partition
    FROM inbox_partition AS mine
    WHERE mine.consumer_group = $1 AND mine.owner = $2
    ORDER BY mine.partition
    FOR UPDATE
) AS mine
WHERE own.consumer_group = $1 AND own.partition = mine.partition AND own.owner = $2
RETURNING own.partition
