-- The rows of the consumers $1 that may be tried, soonest first. Jumping from lane to lane costs the
-- same however much waits behind a head.
WITH RECURSIVE head (id, consumer, lane) AS (
    SELECT first.id, first.consumer, first.lane
    FROM (
        SELECT id, consumer, lane FROM inbox_parked WHERE holds ORDER BY consumer, lane, id LIMIT 1
    ) AS first
    UNION ALL
    SELECT next.id, next.consumer, next.lane
    FROM head
    JOIN inbox_parked AS next ON next.id = (
        SELECT id
        FROM inbox_parked AS other
        WHERE other.holds AND (other.consumer, other.lane) > (head.consumer, head.lane)
        ORDER BY other.consumer, other.lane, other.id
        LIMIT 1
    )
), triable (id) AS (
    SELECT id FROM head
    UNION ALL
    SELECT id FROM inbox_parked WHERE NOT holds AND state <> 'dead'
)
SELECT id, greatest(extract(epoch FROM next_attempt_at - clock_timestamp())::float8, 0)
FROM triable
JOIN inbox_parked USING (id)
WHERE state <> 'dead' AND consumer = ANY ($1)
ORDER BY next_attempt_at, id
LIMIT $2
