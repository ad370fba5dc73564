INSERT INTO outbox_relay (instance, lease_until)
VALUES (?1, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2)
ON CONFLICT (instance) DO UPDATE SET lease_until = excluded.lease_until
