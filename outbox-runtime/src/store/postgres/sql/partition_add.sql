-- $1 group, $2 how many.
INSERT INTO inbox_partition (consumer_group, partition)
SELECT $1, generate_series(0, $2 - 1)
ON CONFLICT DO NOTHING
