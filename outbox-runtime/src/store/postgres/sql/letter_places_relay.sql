-- $1 ids: of each parked letter its head, if it waits behind one; if it is the head itself, how many
-- wait behind it; and whether the position has passed it.
SELECT
    parked.id,
    CASE WHEN parked.state = 'waiting' THEN (
        SELECT head.id
        FROM outbox_parked AS head
        WHERE head.shard = parked.shard AND head.lane = parked.lane AND head.state <> 'waiting'
        ORDER BY head.state, head.id
        LIMIT 1
    ) END,
    CASE WHEN parked.state = 'waiting' THEN 0 ELSE (
        SELECT count(*)
        FROM outbox_parked AS later
        WHERE later.shard = parked.shard
            AND later.lane = parked.lane
            AND later.state = 'waiting'
            AND later.id > parked.id
    ) END,
    parked.id <= (SELECT own.position FROM outbox_shard AS own WHERE own.shard = parked.shard)
FROM outbox_parked AS parked
WHERE parked.id = ANY ($1::bigint[])
