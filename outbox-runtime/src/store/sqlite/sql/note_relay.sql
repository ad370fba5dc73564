-- ?1 ids as JSON, ?2 run, ?3 act, ?4 operator, ?5 reason.
INSERT INTO outbox_operator_note (
    run, act, side, letter_id, consumer, message_id, event_type, operator, reason
)
SELECT ?2, ?3, 'relay', parked.id, '', parked.message_id, parked.event_type, ?4, ?5
FROM outbox_parked AS parked
WHERE parked.id IN (SELECT value FROM json_each(?1))
ORDER BY parked.id
