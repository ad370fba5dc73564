-- ?1 group, ?2 of how many partitions.
SELECT EXISTS (
    SELECT 1 FROM inbox_partition AS free
    WHERE free.consumer_group = ?1
        AND free.partition < ?2
        AND (free.owner IS NULL OR free.lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER))
)
