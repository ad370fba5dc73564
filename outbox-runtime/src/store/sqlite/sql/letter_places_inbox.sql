-- ?1 ids as JSON: of each parked letter the first of its lane, if that is another; how many of its lane are
-- behind it, unless it is only one of those that wait; and whether it can be given up, as all can.
-- 10,000 are counted, as a lane may hold many dead ones behind each other.
SELECT
    placed.id,
    placed.head_id,
    CASE WHEN placed.holds AND (placed.state <> 'waiting' OR placed.head_id IS NULL) THEN (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM inbox_parked AS later
            WHERE later.consumer = placed.consumer
                AND later.lane = placed.lane
                AND later.holds
                AND later.id > placed.id
            LIMIT 10000
        ) AS later
    ) ELSE 0 END,
    1
FROM (
    SELECT
        parked.id, parked.consumer, parked.lane, parked.holds, parked.state,
        CASE WHEN parked.holds THEN (
            SELECT ahead.id
            FROM inbox_parked AS ahead
            WHERE ahead.consumer = parked.consumer
                AND ahead.lane = parked.lane
                AND ahead.holds
                AND ahead.id < parked.id
            ORDER BY ahead.id
            LIMIT 1
        ) END AS head_id
    FROM inbox_parked AS parked
    WHERE parked.id IN (SELECT value FROM json_each(?1))
) AS placed
