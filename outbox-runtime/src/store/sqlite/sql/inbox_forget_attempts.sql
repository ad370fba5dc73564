-- The newest 50 attempts are kept.
DELETE FROM inbox_parked_attempt
WHERE id IN (
    SELECT id FROM inbox_parked_attempt WHERE parked_id = $1 ORDER BY id DESC LIMIT -1 OFFSET 50
)
