-- ?1 ids as JSON, which were discarded. Who takes the head away makes the lowest waiting row the head.
UPDATE outbox_parked
SET state = 'failing', attempts = 0, next_attempt_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE id IN (
    SELECT min(parked.id)
    FROM outbox_parked AS parked
    WHERE (parked.shard, parked.lane) IN (
        SELECT gone.shard, gone.lane
        FROM outbox_discarded AS gone
        WHERE gone.side = 'relay' AND gone.letter_id IN (SELECT value FROM json_each(?1))
    )
    GROUP BY parked.shard, parked.lane
    HAVING min(parked.state) = 'waiting'
)
