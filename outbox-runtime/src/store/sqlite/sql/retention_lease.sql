-- ?1 instance, ?2 lease in milliseconds.
UPDATE outbox_cleaner
SET owner = ?1, lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2
WHERE id = 1
    AND (owner IS NULL OR owner = ?1 OR lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER))
