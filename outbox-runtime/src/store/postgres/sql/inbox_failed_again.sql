-- $1 id, $2 attempts before, $3 state, $4 whether it still holds its lane, $5 wait in seconds,
-- $6 cause. The newest 50 attempts are kept.
WITH failed AS (
    UPDATE inbox_parked
    SET state = $3, holds = holds AND $4, attempts = attempts + 1,
        next_attempt_at = clock_timestamp() + $5::float8 * interval '1 second',
        failing_since = coalesce(failing_since, clock_timestamp()), last_cause = $6
    WHERE id = $1 AND attempts = $2
    RETURNING id, attempts
), attempted AS (
    INSERT INTO inbox_parked_attempt (parked_id, attempt, cause) SELECT id, attempts, $6 FROM failed
), forgotten AS (
    DELETE FROM inbox_parked_attempt
    WHERE id IN (
        SELECT id FROM inbox_parked_attempt WHERE parked_id = $1 ORDER BY id DESC OFFSET 49
    )
)
SELECT count(*) FROM failed
