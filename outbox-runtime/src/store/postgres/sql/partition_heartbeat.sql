-- $1 group, $2 instance, $3 lease in seconds. Says how many other members live.
WITH me AS (
    INSERT INTO inbox_member AS member (consumer_group, instance, lease_until)
    VALUES ($1, $2, clock_timestamp() + $3 * interval '1 second')
    ON CONFLICT (consumer_group, instance) DO UPDATE SET lease_until = excluded.lease_until
),
dead AS (
    DELETE FROM inbox_member AS member
    USING (
        SELECT gone.consumer_group, gone.instance
        FROM inbox_member AS gone
        WHERE gone.lease_until < clock_timestamp() - interval '1 hour'
        FOR UPDATE SKIP LOCKED
    ) AS gone
    WHERE member.consumer_group = gone.consumer_group
        AND member.instance = gone.instance
        AND member.instance <> $2
)
SELECT count(*)
FROM inbox_member AS member
WHERE member.consumer_group = $1 AND member.instance <> $2 AND member.lease_until > clock_timestamp()
