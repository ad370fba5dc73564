-- ?1 shards as bits. Gives a lane without a head, which nobody should have left behind, a new one.
UPDATE outbox_parked
SET state = 'failing', attempts = 0, next_attempt_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE id IN (
    SELECT min(parked.id)
    FROM outbox_parked AS parked
    WHERE (?1 >> parked.shard) & 1
    GROUP BY parked.shard, parked.lane
    HAVING min(parked.state) = 'waiting'
)
