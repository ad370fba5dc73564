-- ?1 group, ?2 instance, ?3 lease in milliseconds, ?4 of how many partitions, ?5 how many.
UPDATE inbox_partition AS own
SET owner = ?2, lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3
WHERE own.consumer_group = ?1 AND own.partition IN (
    SELECT free.partition
    FROM inbox_partition AS free
    WHERE free.consumer_group = ?1
        AND free.partition < ?4
        AND (free.owner IS NULL OR (free.owner <> ?2 AND free.lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER)))
    ORDER BY free.partition
    LIMIT ?5
)
RETURNING partition
