-- $1 ids, $2 how many: the first ones that come later in the lane of each.
SELECT letter.id, later.id
FROM inbox_parked AS letter
CROSS JOIN LATERAL (
    SELECT later.id
    FROM inbox_parked AS later
    WHERE later.consumer = letter.consumer AND later.lane = letter.lane AND later.holds AND later.id > letter.id
    ORDER BY later.id
    LIMIT $2
) AS later
WHERE letter.holds AND letter.id = ANY ($1::bigint[])
ORDER BY letter.id, later.id
