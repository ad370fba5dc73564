-- $1 instance, $2 lease in seconds. Says how many others live.
WITH me AS (
    INSERT INTO outbox_relay AS relay (instance, lease_until)
    VALUES ($1, clock_timestamp() + $2 * interval '1 second')
    ON CONFLICT (instance) DO UPDATE SET lease_until = excluded.lease_until
),
dead AS (
    DELETE FROM outbox_relay AS relay
    USING (
        SELECT instance
        FROM outbox_relay
        WHERE lease_until < clock_timestamp() - interval '1 hour'
        FOR UPDATE SKIP LOCKED
    ) AS gone
    WHERE relay.instance = gone.instance AND relay.instance <> $1
)
SELECT count(*)
FROM outbox_relay AS relay
WHERE relay.instance <> $1 AND relay.lease_until > clock_timestamp()
