-- ?1 id, ?2 how many: the first ones that come later in its lane.
SELECT later.id
FROM outbox_parked AS letter
JOIN outbox_parked AS later
    ON later.shard = letter.shard
    AND later.lane = letter.lane
    AND later.state = 'waiting'
    AND later.id > letter.id
WHERE letter.id = ?1
ORDER BY later.id
LIMIT ?2
