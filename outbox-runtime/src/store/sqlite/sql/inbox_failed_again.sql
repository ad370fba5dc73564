-- $1 id, $2 attempts before, $3 state, $4 whether it still holds its lane, $5 wait in milliseconds,
-- $6 cause.
UPDATE inbox_parked
SET state = $3, holds = holds AND $4, attempts = attempts + 1,
    next_attempt_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + $5,
    failing_since = coalesce(failing_since, CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    last_cause = $6
WHERE id = $1 AND attempts = $2
