-- $1 shards as bits, $2 how many lanes, $3 how many messages behind a head that did not fail yet,
-- $4 how many messages in all, $5 how many bytes of payload and headers they may have, the first
-- one any. A lane's messages stand together, in the order of publishing.
WITH head AS MATERIALIZED (
    SELECT parked.*
    FROM outbox_parked AS parked
    WHERE parked.state = 'failing'
        AND parked.next_attempt_at <= statement_timestamp()
        AND ($1::bigint >> parked.shard::integer) & 1 = 1
    ORDER BY parked.next_attempt_at
    LIMIT $2
),
measured AS (
    SELECT
        due.*,
        head.id AS head_id,
        CASE
            WHEN pg_column_compression(due.payload) IS NULL THEN pg_column_size(due.payload)
            ELSE octet_length(due.payload::text)
        END + coalesce(octet_length(due.headers::text), 0) AS bytes
    FROM head
    CROSS JOIN LATERAL (
        SELECT head.*
        UNION ALL
        (
            SELECT behind.*
            FROM outbox_parked AS behind
            WHERE head.attempts = 0
                AND behind.shard = head.shard
                AND behind.lane = head.lane
                AND behind.state = 'waiting'
            ORDER BY behind.id
            LIMIT $3
        )
    ) AS due
    ORDER BY head.id, due.state, due.id
    LIMIT $4
),
counted AS (
    SELECT
        measured.*,
        sum(measured.bytes) OVER (
            ORDER BY measured.head_id, measured.state, measured.id ROWS UNBOUNDED PRECEDING
        ) AS up_to_here
    FROM measured
)
SELECT
    due.id,
    due.shard,
    due.lane,
    due.attempts,
    CASE
        WHEN due.attempts > 0
            THEN greatest(extract(epoch FROM statement_timestamp() - due.failing_since), 0)::float8
    END,
    due.message_id,
    due.event_type,
    due.schema_version,
    due.aggregate_type,
    due.aggregate_id,
    due.sequence,
    due.correlation_id,
    due.causation_id,
    due.producer,
    CASE
        WHEN due.occurred_at BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00'
        THEN due.occurred_at
    END,
    due.traceparent,
    due.tracestate,
    due.headers::text,
    due.payload::text
FROM counted AS due
WHERE due.up_to_here <= $5 OR due.up_to_here = due.bytes
ORDER BY due.head_id, due.state, due.id
