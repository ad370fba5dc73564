-- ?1 shard, ?2 lane, ?3 the id of its head.
-- Rows that were read of the log again can have come before it meanwhile, one of them as head.
UPDATE outbox_parked
SET state = 'waiting', next_attempt_at = NULL
WHERE shard = ?1 AND lane = ?2 AND state = 'failing' AND id <> ?3
