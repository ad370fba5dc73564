-- ?1 group, ?2 instance, ?3 lease in milliseconds.
UPDATE inbox_partition
SET lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3
WHERE consumer_group = ?1 AND owner = ?2
RETURNING partition
