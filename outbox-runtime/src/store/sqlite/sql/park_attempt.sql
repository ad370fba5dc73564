-- ?1 id, ?2 cause. Not when this is done again because the answer was lost.
INSERT INTO outbox_parked_attempt (parked_id, attempt, cause)
SELECT message.id, 1, ?2
FROM outbox_message AS message
WHERE message.id = ?1 AND NOT EXISTS (SELECT 1 FROM outbox_parked AS parked WHERE parked.id = ?1)
