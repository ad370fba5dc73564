-- $1 instance; $2 ids, $3 shards, $4 epochs, $5 lanes, $6 states, $7 seconds to the next attempt,
-- $8 causes. Says of which shards the instance is the owner: those rows are parked.
-- The lock keeps a new owner from claiming a shard before it can see what was parked.
WITH mine AS (
    SELECT own.shard
    FROM outbox_shard AS own
    WHERE own.owner = $1
        AND (own.shard, own.epoch) IN (SELECT * FROM unnest($3::smallint[], $4::bigint[]))
    ORDER BY own.shard
    FOR UPDATE
),
ranked AS (
    SELECT
        given.*,
        row_number() OVER (PARTITION BY given.shard, given.lane ORDER BY given.state, given.id) AS place
    FROM unnest($2::bigint[], $3::smallint[], $5::text[], $6::text[], $7::float8[], $8::text[])
        AS given (id, shard, lane, state, delay, cause)
    JOIN mine ON mine.shard = given.shard
),
given AS MATERIALIZED (
    -- Who waits behind nobody is the head.
    SELECT
        ranked.*,
        ranked.state = 'waiting'
            AND ranked.place = 1
            AND NOT EXISTS (
                SELECT FROM outbox_parked AS parked
                WHERE parked.shard = ranked.shard AND parked.lane = ranked.lane
            ) AS is_alone
    FROM ranked
),
attempt AS (
    INSERT INTO outbox_parked_attempt (parked_id, attempt, cause)
    SELECT given.id, 1, given.cause
    FROM given
    JOIN outbox_message AS message ON message.id = given.id
    WHERE given.cause IS NOT NULL
        -- Not when this is done again because the answer was lost.
        AND NOT EXISTS (SELECT FROM outbox_parked AS parked WHERE parked.id = given.id)
),
parked AS (
    INSERT INTO outbox_parked AS old (
        id, shard, lane, state, attempts, next_attempt_at, failing_since, last_cause,
        message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
        correlation_id, causation_id, producer, occurred_at, traceparent, tracestate, headers,
        business_key, payload
    )
    SELECT
        given.id,
        given.shard,
        given.lane,
        CASE WHEN given.is_alone THEN 'failing' ELSE given.state END,
        CASE WHEN given.cause IS NULL THEN 0 ELSE 1 END,
        CASE
            WHEN given.is_alone THEN clock_timestamp()
            ELSE clock_timestamp() + given.delay * interval '1 second'
        END,
        CASE WHEN given.cause IS NOT NULL THEN clock_timestamp() END,
        given.cause,
        message.message_id, message.event_type, message.schema_version, message.aggregate_type,
        message.aggregate_id, message.sequence, message.correlation_id, message.causation_id,
        message.producer, message.occurred_at, message.traceparent, message.tracestate,
        message.headers, message.business_key, message.payload
    FROM given
    JOIN outbox_message AS message ON message.id = given.id
    ON CONFLICT (id) DO UPDATE
    SET lane = excluded.lane, state = excluded.state, attempts = excluded.attempts,
        next_attempt_at = excluded.next_attempt_at, failing_since = excluded.failing_since,
        last_cause = excluded.last_cause
    WHERE excluded.attempts > 0
)
SELECT mine.shard FROM mine
