-- Letters of the inbox, in the order of their ids. $1 after which id, $2 up to which, $3 how many,
-- $4 states as bits (1 dead, 2 failing, 4 waiting, 8 discarded). Where not NULL: $5 ids, $6 event
-- type, $7 aggregate type, $8 aggregate id, $9 consumer, $10 correlation id, $11 message id, $12 and
-- $13 the least and the greatest age in seconds, $14 what the last cause holds.
WITH letter AS (
    SELECT letter.*
    FROM (
        SELECT
            parked.id AS letter_id,
            parked.consumer AS consumer,
            CASE
                WHEN parked.state = 'dead' THEN 1
                WHEN parked.state = 'failing' AND parked.attempts > 0 THEN 2
                ELSE 4
            END AS state,
            parked.attempts,
            parked.parked_at,
            parked.failing_since,
            CASE WHEN parked.state <> 'dead' THEN parked.next_attempt_at END AS next_attempt_at,
            NULL::timestamptz AS discarded_at,
            parked.last_cause,
            parked.message_id,
            parked.event_type,
            parked.schema_version::bigint AS schema_version,
            parked.aggregate_type,
            parked.aggregate_id,
            parked.sequence,
            parked.correlation_id,
            parked.producer,
            CASE
                WHEN parked.occurred_at BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00'
                THEN parked.occurred_at
            END AS occurred_at,
            parked.occurred_nanos,
            octet_length(parked.payload::text) AS payload_bytes,
            parked.lane,
            parked.holds
        FROM inbox_parked AS parked
        UNION ALL
        SELECT
            gone.letter_id AS letter_id,
            gone.consumer AS consumer,
            8 AS state,
            gone.attempts,
            gone.parked_at,
            gone.failing_since,
            NULL::timestamptz AS next_attempt_at,
            gone.discarded_at,
            gone.last_cause,
            gone.message_id,
            gone.event_type,
            gone.schema_version::bigint AS schema_version,
            gone.aggregate_type,
            gone.aggregate_id,
            gone.sequence,
            gone.correlation_id,
            gone.producer,
            CASE
                WHEN gone.occurred_at BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00'
                THEN gone.occurred_at
            END AS occurred_at,
            gone.occurred_nanos,
            octet_length(gone.payload::text) AS payload_bytes,
            gone.lane,
            false AS holds
        FROM outbox_discarded AS gone
        WHERE gone.side = 'inbox'
    ) AS letter
    WHERE letter.letter_id > $1
        AND letter.letter_id <= $2
        AND letter.state & $4 <> 0
        AND ($5::bigint[] IS NULL OR letter.letter_id = ANY ($5))
        AND ($6::text IS NULL OR letter.event_type = $6)
        AND ($7::text IS NULL OR letter.aggregate_type = $7)
        AND ($8::text IS NULL OR letter.aggregate_id = $8)
        AND ($9::text IS NULL OR letter.consumer = $9)
        AND ($10::text IS NULL OR letter.correlation_id = $10)
        AND ($11::uuid IS NULL OR letter.message_id = $11)
        AND ($12::float8 IS NULL OR letter.parked_at <= statement_timestamp() - $12 * interval '1 second')
        AND ($13::float8 IS NULL OR letter.parked_at >= statement_timestamp() - $13 * interval '1 second')
        AND ($14::text IS NULL OR strpos(letter.last_cause, $14) > 0)
    ORDER BY letter.letter_id
    LIMIT $3
)
SELECT
    letter.letter_id, letter.consumer, letter.state, letter.attempts, letter.parked_at,
    letter.failing_since, letter.next_attempt_at, letter.discarded_at, letter.last_cause,
    letter.message_id, letter.event_type, letter.schema_version, letter.aggregate_type,
    letter.aggregate_id, letter.sequence, letter.correlation_id, letter.producer,
    letter.occurred_at, letter.occurred_nanos, letter.payload_bytes,
    CASE WHEN letter.holds THEN (
        SELECT min(ahead.id)
        FROM inbox_parked AS ahead
        WHERE ahead.consumer = letter.consumer
            AND ahead.lane = letter.lane
            AND ahead.holds
            AND ahead.id < letter.letter_id
    ) END,
    CASE WHEN letter.holds THEN (
        SELECT count(*)
        FROM inbox_parked AS later
        WHERE later.consumer = letter.consumer
            AND later.lane = letter.lane
            AND later.holds
            AND later.id > letter.letter_id
    ) ELSE 0 END,
    true
FROM letter
ORDER BY letter.letter_id
