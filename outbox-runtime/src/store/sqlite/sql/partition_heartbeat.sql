-- ?1 group, ?2 instance, ?3 lease in milliseconds.
INSERT INTO inbox_member (consumer_group, instance, lease_until)
VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3)
ON CONFLICT (consumer_group, instance) DO UPDATE SET lease_until = excluded.lease_until
