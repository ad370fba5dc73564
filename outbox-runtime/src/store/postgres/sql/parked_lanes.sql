-- $1 shards as bits. Gives a lane without a head, which nobody should have left behind, a new one.
WITH lanes AS (
    SELECT
        parked.shard,
        parked.lane,
        min(parked.id) AS first_id,
        bool_and(parked.state = 'waiting') AS is_headless
    FROM outbox_parked AS parked
    WHERE ($1::bigint >> parked.shard::integer) & 1 = 1
    GROUP BY parked.shard, parked.lane
),
promoted AS (
    UPDATE outbox_parked AS parked
    SET state = 'failing', attempts = 0, next_attempt_at = clock_timestamp()
    FROM lanes
    WHERE lanes.is_headless AND parked.id = lanes.first_id AND parked.state = 'waiting'
)
SELECT lanes.shard, lanes.lane FROM lanes
