-- $1 instance, $2 lease in seconds.
UPDATE outbox_cleaner
SET owner = $1, lease_until = clock_timestamp() + $2 * interval '1 second'
WHERE id = 1 AND (owner IS NULL OR owner = $1 OR lease_until < clock_timestamp())
