-- Parked letters of the inbox, in the order of their ids. ?1 after which id, ?2 up to which, ?3 how
-- many, ?4 states as bits (1 dead, 2 failing, 4 waiting, 8 discarded). Where not NULL: ?5
-- ids as JSON, ?6 event type, ?7 aggregate type, ?8 aggregate id, ?9 consumer, ?10 correlation id, ?11
-- message id, ?12 and ?13 the least and the greatest age in milliseconds, ?14 what the last cause
-- holds.
SELECT
    parked.id, parked.consumer,
    CASE
        WHEN parked.state = 'dead' THEN 1
        WHEN parked.state = 'failing' AND parked.attempts > 0 THEN 2
        ELSE 4
    END,
    parked.attempts, parked.parked_at, parked.failing_since,
    CASE WHEN parked.state <> 'dead' THEN parked.next_attempt_at END, NULL, parked.last_cause,
    CAST(parked.message_id AS BLOB), CAST(parked.event_type AS TEXT),
    CAST(parked.schema_version AS INTEGER), CAST(parked.aggregate_type AS TEXT),
    CAST(parked.aggregate_id AS TEXT), CAST(parked.sequence AS INTEGER),
    CAST(parked.correlation_id AS TEXT), CAST(parked.producer AS TEXT),
    CAST(parked.occurred_at AS INTEGER), parked.occurred_nanos,
    length(CAST(parked.payload AS BLOB))
FROM inbox_parked AS parked
WHERE parked.id > ?1
    AND parked.id <= ?2
    AND (?5 IS NULL OR parked.id IN (SELECT value FROM json_each(?5)))
    AND CASE
        WHEN parked.state = 'dead' THEN 1
        WHEN parked.state = 'failing' AND parked.attempts > 0 THEN 2
        ELSE 4
    END & ?4 <> 0
    AND (?6 IS NULL OR parked.event_type = ?6)
    AND (?7 IS NULL OR parked.aggregate_type = ?7)
    AND (?8 IS NULL OR parked.aggregate_id = ?8)
    AND (?9 IS NULL OR parked.consumer = ?9)
    AND (?10 IS NULL OR parked.correlation_id = ?10)
    AND (?11 IS NULL OR parked.message_id = ?11)
    AND (?12 IS NULL OR parked.parked_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?12)
    AND (?13 IS NULL OR parked.parked_at >= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?13)
    AND (?14 IS NULL OR instr(parked.last_cause, ?14) > 0)
ORDER BY parked.id
LIMIT ?3
