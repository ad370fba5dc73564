-- The consumers among $1 that have dead rows, or rows that failed $2 times or more, and those that
-- are not among $3 and have dead rows, or rows that have been due for a minute and nobody tries:
-- with numbers and the oldest of those rows.
SELECT
    sums.consumer, sums.dead, sums.failing, sums.parked,
    oldest.message_id, oldest.event_type, oldest.schema_version, oldest.last_cause,
    sums.is_orphaned, sums.stuck
FROM (
    SELECT
        seen.consumer,
        seen.is_orphaned,
        count(*) FILTER (WHERE seen.state = 'dead') AS dead,
        count(*) FILTER (WHERE seen.state = 'failing' AND seen.attempts >= $2) AS failing,
        count(*) FILTER (WHERE seen.is_stuck) AS stuck,
        count(*) AS parked,
        min(seen.id) FILTER (
            WHERE seen.state = 'dead' OR seen.is_stuck OR (NOT seen.is_orphaned AND seen.attempts >= $2)
        ) AS oldest
    FROM (
        SELECT
            parked.id,
            parked.consumer,
            parked.state,
            parked.attempts,
            parked.consumer <> ALL ($3) AS is_orphaned,
            parked.consumer <> ALL ($3)
                AND parked.state <> 'dead'
                AND parked.next_attempt_at < clock_timestamp() - interval '1 minute'
                AND (parked.state = 'failing' OR NOT EXISTS (
                    SELECT FROM inbox_parked AS ahead
                    WHERE ahead.consumer = parked.consumer
                        AND ahead.lane = parked.lane
                        AND ahead.holds
                        AND ahead.id < parked.id
                )) AS is_stuck
        FROM inbox_parked AS parked
        WHERE parked.consumer = ANY ($1) OR parked.consumer <> ALL ($3)
    ) AS seen
    GROUP BY seen.consumer, seen.is_orphaned
) AS sums
JOIN inbox_parked AS oldest ON oldest.id = sums.oldest
ORDER BY sums.consumer
