-- In how many milliseconds the next one is due; negative when it is overdue. No interval can be
-- counted to `infinity`, which a foreign writer may have stored.
SELECT ceil(extract(epoch FROM min(due_at) - clock_timestamp()) * 1000)::bigint
FROM outbox_scheduled
WHERE isfinite(due_at)
