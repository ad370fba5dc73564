-- $1 group, $2 instance, $3 partitions.
UPDATE inbox_partition AS own
SET owner = NULL, lease_until = NULL
FROM (
    SELECT mine.partition
    FROM inbox_partition AS mine
    WHERE mine.consumer_group = $1 AND mine.owner = $2 AND mine.partition = ANY ($3::integer[])
    ORDER BY mine.partition
    FOR UPDATE
) AS mine
WHERE own.consumer_group = $1 AND own.partition = mine.partition AND own.owner = $2
