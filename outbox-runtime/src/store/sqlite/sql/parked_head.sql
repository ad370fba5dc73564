-- ?1 shard, ?2 lane: its head, or the one that should be.
SELECT parked.id, parked.state = 'waiting'
FROM outbox_parked AS parked
WHERE parked.shard = ?1 AND parked.lane = ?2
ORDER BY parked.state, parked.id
LIMIT 1
