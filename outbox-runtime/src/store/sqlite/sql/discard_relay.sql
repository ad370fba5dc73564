-- ?1 ids as JSON.
DELETE FROM outbox_parked WHERE id IN (SELECT value FROM json_each(?1))
