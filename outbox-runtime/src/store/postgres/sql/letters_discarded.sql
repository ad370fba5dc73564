-- Discarded letters, in the order of their ids. $1 after which id, $2 up to which, $3 how
-- many, $4 states as bits (1 dead, 2 failing, 4 waiting, 8 discarded), $15 the side. Where not NULL: $5
-- ids, $6 event type, $7 aggregate type, $8 aggregate id, $9 consumer, $10 correlation id, $11
-- message id, $12 and $13 the least and the greatest age in seconds, $14 what the last cause
-- holds.
SELECT
    gone.letter_id, CASE gone.side WHEN 'inbox' THEN gone.consumer END, 8, gone.attempts,
    gone.parked_at, gone.failing_since, NULL::timestamptz, gone.discarded_at, gone.last_cause,
    gone.message_id, gone.event_type, gone.schema_version::bigint, gone.aggregate_type,
    gone.aggregate_id, gone.sequence, gone.correlation_id, gone.producer,
    CASE
        WHEN gone.occurred_at BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00'
        THEN gone.occurred_at
    END,
    gone.occurred_nanos, octet_length(gone.payload::text)
FROM outbox_discarded AS gone
WHERE gone.side = $15
    AND gone.letter_id > $1
    AND gone.letter_id <= $2
    AND ($5::bigint[] IS NULL OR gone.letter_id = ANY ($5))
    AND 8 & $4 <> 0
    AND ($6::text IS NULL OR gone.event_type = $6)
    AND ($7::text IS NULL OR gone.aggregate_type = $7)
    AND ($8::text IS NULL OR gone.aggregate_id = $8)
    AND ($9::text IS NULL OR (gone.side = 'inbox' AND gone.consumer = $9))
    AND ($10::text IS NULL OR gone.correlation_id = $10)
    AND ($11::uuid IS NULL OR gone.message_id = $11)
    AND ($12::float8 IS NULL OR gone.parked_at <= statement_timestamp() - $12 * interval '1 second')
    AND ($13::float8 IS NULL OR gone.parked_at >= statement_timestamp() - $13 * interval '1 second')
    AND ($14::text IS NULL OR strpos(gone.last_cause, $14) > 0)
ORDER BY gone.letter_id
LIMIT $3
