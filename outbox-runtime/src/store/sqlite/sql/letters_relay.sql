-- Letters of the relay, in the order of their ids. ?1 after which id, ?2 up to which, ?3 how many,
-- ?4 states as bits (1 dead, 2 failing, 4 waiting, 8 discarded). Where not NULL: ?5 ids as JSON, ?6 event
-- type, ?7 aggregate type, ?8 aggregate id, ?9 consumer, ?10 correlation id, ?11 message id, ?12 and
-- ?13 the least and the greatest age in milliseconds, ?14 what the last cause holds.
WITH letter AS (
    SELECT letter.*
    FROM (
        SELECT
            parked.id AS letter_id,
            NULL AS consumer,
            CASE
                WHEN parked.state = 'dead' THEN 1
                WHEN parked.state = 'failing' AND parked.attempts > 0 THEN 2
                ELSE 4
            END AS state,
            parked.attempts,
            parked.parked_at,
            parked.failing_since,
            parked.next_attempt_at,
            NULL AS discarded_at,
            parked.last_cause,
            CAST(parked.message_id AS BLOB) AS message_id,
            CAST(parked.event_type AS TEXT) AS event_type,
            CAST(parked.schema_version AS INTEGER) AS schema_version,
            CAST(parked.aggregate_type AS TEXT) AS aggregate_type,
            CAST(parked.aggregate_id AS TEXT) AS aggregate_id,
            CAST(parked.sequence AS INTEGER) AS sequence,
            CAST(parked.correlation_id AS TEXT) AS correlation_id,
            CAST(parked.producer AS TEXT) AS producer,
            CAST(parked.occurred_at AS INTEGER) AS occurred_at,
            NULL AS occurred_nanos,
            length(CAST(parked.payload AS BLOB)) AS payload_bytes,
            parked.lane,
            parked.shard,
            parked.state = 'waiting' AS is_behind
        FROM outbox_parked AS parked
        UNION ALL
        SELECT
            gone.letter_id AS letter_id,
            NULL AS consumer,
            8 AS state,
            gone.attempts,
            gone.parked_at,
            gone.failing_since,
            NULL AS next_attempt_at,
            gone.discarded_at,
            gone.last_cause,
            CAST(gone.message_id AS BLOB) AS message_id,
            CAST(gone.event_type AS TEXT) AS event_type,
            CAST(gone.schema_version AS INTEGER) AS schema_version,
            CAST(gone.aggregate_type AS TEXT) AS aggregate_type,
            CAST(gone.aggregate_id AS TEXT) AS aggregate_id,
            CAST(gone.sequence AS INTEGER) AS sequence,
            CAST(gone.correlation_id AS TEXT) AS correlation_id,
            CAST(gone.producer AS TEXT) AS producer,
            CAST(gone.occurred_at AS INTEGER) AS occurred_at,
            gone.occurred_nanos,
            length(CAST(gone.payload AS BLOB)) AS payload_bytes,
            gone.lane,
            gone.shard,
            0 AS is_behind
        FROM outbox_discarded AS gone
        WHERE gone.side = 'relay'
    ) AS letter
    WHERE letter.letter_id > ?1
        AND letter.letter_id <= ?2
        AND letter.state & ?4 <> 0
        AND (?5 IS NULL OR letter.letter_id IN (SELECT value FROM json_each(?5)))
        AND (?6 IS NULL OR letter.event_type = ?6)
        AND (?7 IS NULL OR letter.aggregate_type = ?7)
        AND (?8 IS NULL OR letter.aggregate_id = ?8)
        AND ?9 IS NULL
        AND (?10 IS NULL OR letter.correlation_id = ?10)
        AND (?11 IS NULL OR letter.message_id = ?11)
        AND (?12 IS NULL OR letter.parked_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?12)
        AND (?13 IS NULL OR letter.parked_at >= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?13)
        AND (?14 IS NULL OR instr(letter.last_cause, ?14) > 0)
    ORDER BY letter.letter_id
    LIMIT ?3
)
SELECT
    letter.letter_id, letter.consumer, letter.state, letter.attempts, letter.parked_at,
    letter.failing_since, letter.next_attempt_at, letter.discarded_at, letter.last_cause,
    letter.message_id, letter.event_type, letter.schema_version, letter.aggregate_type,
    letter.aggregate_id, letter.sequence, letter.correlation_id, letter.producer,
    letter.occurred_at, letter.occurred_nanos, letter.payload_bytes,
    CASE WHEN letter.is_behind THEN (
        SELECT head.id
        FROM outbox_parked AS head
        WHERE head.shard = letter.shard AND head.lane = letter.lane AND head.state <> 'waiting'
        ORDER BY head.state, head.id
        LIMIT 1
    ) END,
    CASE WHEN letter.state <> 8 THEN (
        SELECT count(*)
        FROM outbox_parked AS later
        WHERE later.shard = letter.shard AND later.lane = letter.lane AND later.id > letter.letter_id
    ) ELSE 0 END,
    letter.state <> 8 AND letter.letter_id <= (
        SELECT own.position FROM outbox_shard AS own WHERE own.shard = letter.shard
    )
FROM letter
ORDER BY letter.letter_id
