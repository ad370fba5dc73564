-- $1 instance; of each lane $2 shard, $3 epoch, $4 lane and, if its last message failed, $5 that
-- one's id, $6 its attempts, $7 state, $8 seconds to the next attempt, $9 cause and $10 the lane to
-- which it goes; $11 the ids that were published; $12 how many attempts are kept.
-- Says which lanes are empty.
WITH mine AS (
    SELECT own.shard
    FROM outbox_shard AS own
    WHERE own.owner = $1
        AND (own.shard, own.epoch) IN (SELECT * FROM unnest($2::smallint[], $3::bigint[]))
    ORDER BY own.shard
    FOR UPDATE
),
given AS MATERIALIZED (
    SELECT given.*
    FROM unnest(
        $2::smallint[], $4::text[], $5::bigint[], $6::integer[], $7::text[], $8::float8[],
        $9::text[], $10::text[]
    ) AS given (shard, lane, failed, attempts, state, delay, cause, goes_to)
    JOIN mine ON mine.shard = given.shard
),
gone AS (
    DELETE FROM outbox_parked AS parked
    USING mine
    WHERE parked.id = ANY($11::bigint[]) AND parked.shard = mine.shard
),
failed AS (
    UPDATE outbox_parked AS parked
    SET state = given.state,
        lane = coalesce(given.goes_to, parked.lane),
        attempts = given.attempts,
        next_attempt_at = clock_timestamp() + given.delay * interval '1 second',
        failing_since = CASE given.attempts WHEN 1 THEN clock_timestamp() ELSE parked.failing_since END,
        last_cause = given.cause
    FROM given
    WHERE parked.id = given.failed AND parked.attempts = given.attempts - 1
    RETURNING parked.id, given.attempts, given.cause
),
demoted AS (
    -- Rows that were read of the log again can have come before it meanwhile, one of them as head.
    UPDATE outbox_parked AS parked
    SET state = 'waiting', next_attempt_at = NULL
    FROM given
    JOIN failed ON failed.id = given.failed
    WHERE given.goes_to IS NULL
        AND parked.shard = given.shard
        AND parked.lane = given.lane
        AND parked.state = 'failing'
        AND parked.id <> given.failed
        AND parked.id <> ALL ($11::bigint[])
),
attempt AS (
    INSERT INTO outbox_parked_attempt (parked_id, attempt, cause)
    SELECT failed.id, failed.attempts, failed.cause FROM failed
),
forgotten AS (
    DELETE FROM outbox_parked_attempt AS attempt
    USING failed
    CROSS JOIN LATERAL (
        SELECT old.id
        FROM outbox_parked_attempt AS old
        WHERE old.parked_id = failed.id
        ORDER BY old.id DESC
        OFFSET $12::bigint - 1
    ) AS old
    WHERE attempt.id = old.id
),
next AS (
    SELECT given.shard, given.lane, given.failed, given.goes_to, head.id
    FROM given
    LEFT JOIN LATERAL (
        SELECT parked.id
        FROM outbox_parked AS parked
        WHERE parked.shard = given.shard
            AND parked.lane = given.lane
            AND parked.id <> ALL ($11::bigint[])
            AND (given.goes_to IS NULL OR parked.id <> given.failed)
        ORDER BY parked.state, parked.id
        LIMIT 1
    ) AS head ON true
),
promoted AS (
    UPDATE outbox_parked AS parked
    SET state = 'failing', attempts = 0, next_attempt_at = clock_timestamp()
    FROM next
    WHERE parked.id = next.id
        AND parked.state = 'waiting'
        AND (next.failed IS NULL OR next.goes_to IS NOT NULL)
)
SELECT next.shard, next.lane FROM next WHERE next.id IS NULL
