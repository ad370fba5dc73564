-- Parked letters of the inbox, in the order of their ids. $1 after which id, $2 up to which, $3 how
-- many, $4 states as bits (1 dead, 2 failing, 4 waiting, 8 discarded). Where not NULL: $5
-- ids, $6 event type, $7 aggregate type, $8 aggregate id, $9 consumer, $10 correlation id, $11
-- message id, $12 and $13 the least and the greatest age in seconds, $14 what the last cause
-- holds.
SELECT
    parked.id, parked.consumer,
    CASE
        WHEN parked.state = 'dead' THEN 1
        WHEN parked.state = 'failing' AND parked.attempts > 0 THEN 2
        ELSE 4
    END,
    parked.attempts, parked.parked_at, parked.failing_since,
    CASE WHEN parked.state <> 'dead' THEN parked.next_attempt_at END, NULL::timestamptz,
    parked.last_cause, parked.message_id, parked.event_type, parked.schema_version::bigint,
    parked.aggregate_type, parked.aggregate_id, parked.sequence, parked.correlation_id,
    parked.producer,
    CASE
        WHEN parked.occurred_at BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00'
        THEN parked.occurred_at
    END,
    parked.occurred_nanos, octet_length(parked.payload::text)
FROM inbox_parked AS parked
WHERE parked.id > $1
    AND parked.id <= $2
    AND ($5::bigint[] IS NULL OR parked.id = ANY ($5))
    AND CASE
        WHEN parked.state = 'dead' THEN 1
        WHEN parked.state = 'failing' AND parked.attempts > 0 THEN 2
        ELSE 4
    END & $4 <> 0
    AND ($6::text IS NULL OR parked.event_type = $6)
    AND ($7::text IS NULL OR parked.aggregate_type = $7)
    AND ($8::text IS NULL OR parked.aggregate_id = $8)
    AND ($9::text IS NULL OR parked.consumer = $9)
    AND ($10::text IS NULL OR parked.correlation_id = $10)
    AND ($11::uuid IS NULL OR parked.message_id = $11)
    AND ($12::float8 IS NULL OR parked.parked_at <= statement_timestamp() - $12 * interval '1 second')
    AND ($13::float8 IS NULL OR parked.parked_at >= statement_timestamp() - $13 * interval '1 second')
    AND ($14::text IS NULL OR strpos(parked.last_cause, $14) > 0)
ORDER BY parked.id
LIMIT $3
