-- The consumers among $1 that have dead rows, or rows that failed $2 times or more, with numbers and
-- the oldest of those rows.
SELECT
    sums.consumer, sums.dead, sums.failing, sums.parked,
    oldest.message_id, oldest.event_type, oldest.schema_version, oldest.last_cause
FROM (
    SELECT
        consumer,
        count(*) FILTER (WHERE state = 'dead') AS dead,
        count(*) FILTER (WHERE state = 'failing' AND attempts >= $2) AS failing,
        count(*) AS parked,
        min(id) FILTER (WHERE state = 'dead' OR attempts >= $2) AS oldest
    FROM inbox_parked
    WHERE consumer IN (SELECT value FROM json_each($1))
    GROUP BY consumer
) AS sums
JOIN inbox_parked AS oldest ON oldest.id = sums.oldest
ORDER BY sums.consumer
