-- ?1 group, ?2 instance. How many other members live.
SELECT count(*)
FROM inbox_member
WHERE consumer_group = ?1 AND instance <> ?2 AND lease_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
