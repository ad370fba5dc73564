-- ?1 ids as JSON, which were discarded. Who takes the head away makes the lowest waiting row the head.
UPDATE outbox_parked
SET state = 'failing', attempts = 0, next_attempt_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE state = 'waiting'
    AND id IN (
        SELECT (
            SELECT head.id
            FROM outbox_parked AS head
            WHERE head.shard = lane.shard AND head.lane = lane.lane
            ORDER BY head.state, head.id
            LIMIT 1
        )
        FROM (
            SELECT DISTINCT gone.shard, gone.lane
            FROM outbox_discarded AS gone
            WHERE gone.side = 'relay' AND gone.letter_id IN (SELECT value FROM json_each(?1))
        ) AS lane
    )
