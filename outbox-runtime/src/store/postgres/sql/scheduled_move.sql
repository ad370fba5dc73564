-- $1 how many. A row that somebody cancels at this moment is left to them. Whose business key is
-- stored already is dropped: both were committed at the same moment, and the stored one counts.
WITH due AS (
    DELETE FROM outbox_scheduled AS scheduled
    USING (
        SELECT ripe.id
        FROM outbox_scheduled AS ripe
        WHERE ripe.due_at <= statement_timestamp()
        ORDER BY ripe.due_at, ripe.id
        LIMIT $1
        FOR UPDATE SKIP LOCKED
    ) AS ripe
    WHERE scheduled.id = ripe.id
    RETURNING scheduled.*
),
moved AS (
    INSERT INTO outbox_message (
        shard, message_id, event_type, schema_version, aggregate_type, aggregate_id, sequence,
        correlation_id, causation_id, producer, occurred_at, traceparent, tracestate, headers,
        business_key, payload
    )
    SELECT
        due.shard, due.message_id, due.event_type, due.schema_version, due.aggregate_type,
        due.aggregate_id, due.sequence, due.correlation_id, due.causation_id, due.producer,
        greatest(due.due_at, due.occurred_at), due.traceparent, due.tracestate, due.headers,
        due.business_key, due.payload
    FROM due
    ORDER BY due.due_at, due.id
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT (SELECT count(*) FROM due), (SELECT count(*) FROM moved)
