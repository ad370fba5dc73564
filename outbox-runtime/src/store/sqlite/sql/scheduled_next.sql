-- In how many milliseconds the next one is due; negative when it is overdue.
SELECT min(due_at) - CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM outbox_scheduled
