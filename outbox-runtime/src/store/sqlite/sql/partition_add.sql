-- ?1 group, ?2 how many.
INSERT INTO inbox_partition (consumer_group, partition)
WITH RECURSIVE number (n) AS (
    SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?2
)
SELECT ?1, n FROM number WHERE true
ON CONFLICT DO NOTHING
