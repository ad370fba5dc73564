-- $1 ids, $2 how many: the first ones that come later in the lane of each.
SELECT letter.id, later.id
FROM outbox_parked AS letter
CROSS JOIN LATERAL (
    SELECT later.id
    FROM outbox_parked AS later
    WHERE later.shard = letter.shard
        AND later.lane = letter.lane
        AND later.state = 'waiting'
        AND later.id > letter.id
    ORDER BY later.id
    LIMIT $2
) AS later
WHERE letter.id = ANY ($1::bigint[])
ORDER BY letter.id, later.id
