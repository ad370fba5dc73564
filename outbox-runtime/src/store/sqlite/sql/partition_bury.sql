DELETE FROM inbox_member
WHERE lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER) - 3600000
