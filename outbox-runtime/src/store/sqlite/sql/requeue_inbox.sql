-- ?1 ids as JSON.
UPDATE inbox_parked
SET state = 'failing', attempts = 0, failing_since = NULL,
    next_attempt_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE id IN (SELECT value FROM json_each(?1))
