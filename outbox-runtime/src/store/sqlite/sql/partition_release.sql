-- ?1 group, ?2 instance, ?3 [partition, ...].
UPDATE inbox_partition
SET owner = NULL, lease_until = NULL
WHERE consumer_group = ?1
    AND owner = ?2
    AND partition IN (SELECT value FROM json_each(?3))
