UPDATE outbox_parked
SET state = 'failing', attempts = 0, next_attempt_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE id = ?1
