-- ?1 ids as JSON.
DELETE FROM inbox_parked WHERE id IN (SELECT value FROM json_each(?1))
