-- ?1 ids as JSON.
DELETE FROM outbox_parked_attempt WHERE parked_id IN (SELECT value FROM json_each(?1))
