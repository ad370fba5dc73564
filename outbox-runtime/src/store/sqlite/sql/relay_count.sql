SELECT count(*)
FROM outbox_relay
WHERE instance = ?1 OR lease_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
