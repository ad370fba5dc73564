-- Discarded letters, in the order of their ids. ?1 after which id, ?2 up to which, ?3 how
-- many, ?4 states as bits (1 dead, 2 failing, 4 waiting, 8 discarded), ?15 the side. Where not NULL: ?5
-- ids as JSON, ?6 event type, ?7 aggregate type, ?8 aggregate id, ?9 consumer, ?10 correlation id, ?11
-- message id, ?12 and ?13 the least and the greatest age in milliseconds, ?14 what the last cause
-- holds.
SELECT
    gone.letter_id, CASE gone.side WHEN 'inbox' THEN gone.consumer END, 8, gone.attempts,
    gone.parked_at, gone.failing_since, NULL, gone.discarded_at, gone.last_cause,
    CAST(gone.message_id AS BLOB), CAST(gone.event_type AS TEXT),
    CAST(gone.schema_version AS INTEGER), CAST(gone.aggregate_type AS TEXT),
    CAST(gone.aggregate_id AS TEXT), CAST(gone.sequence AS INTEGER),
    CAST(gone.correlation_id AS TEXT), CAST(gone.producer AS TEXT),
    CAST(gone.occurred_at AS INTEGER), gone.occurred_nanos, length(CAST(gone.payload AS BLOB))
FROM outbox_discarded AS gone
WHERE gone.side = ?15
    AND gone.letter_id > ?1
    AND gone.letter_id <= ?2
    AND (?5 IS NULL OR gone.letter_id IN (SELECT value FROM json_each(?5)))
    AND 8 & ?4 <> 0
    AND (?6 IS NULL OR gone.event_type = ?6)
    AND (?7 IS NULL OR gone.aggregate_type = ?7)
    AND (?8 IS NULL OR gone.aggregate_id = ?8)
    AND (?9 IS NULL OR (gone.side = 'inbox' AND gone.consumer = ?9))
    AND (?10 IS NULL OR gone.correlation_id = ?10)
    AND (?11 IS NULL OR gone.message_id = ?11)
    AND (?12 IS NULL OR gone.parked_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?12)
    AND (?13 IS NULL OR gone.parked_at >= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?13)
    AND (?14 IS NULL OR instr(gone.last_cause, ?14) > 0)
ORDER BY gone.letter_id
LIMIT ?3
