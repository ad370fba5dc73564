-- ?1 id, ?2 attempts, ?3 state, ?4 milliseconds to the next attempt, ?5 cause, ?6 the lane to which
-- it goes.
UPDATE outbox_parked
SET state = ?3,
    lane = coalesce(?6, lane),
    attempts = ?2,
    next_attempt_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?4,
    failing_since = CASE ?2 WHEN 1 THEN CAST(unixepoch('subsec') * 1000 AS INTEGER) ELSE failing_since END,
    last_cause = ?5
WHERE id = ?1 AND attempts = ?2 - 1
