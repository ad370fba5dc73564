-- outbox-runtime, migration 4 for PostgreSQL: events that are scheduled for later.

-- A row leaves when it is due, for `outbox_message`, or when it is cancelled. `occurred_at` says
-- when it was raised.
CREATE TABLE outbox_scheduled (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    due_at         timestamptz NOT NULL,
    shard          smallint    CHECK (shard BETWEEN 0 AND 63),
    message_id     uuid        NOT NULL DEFAULT gen_random_uuid(),
    event_type     text        NOT NULL,
    schema_version integer     NOT NULL DEFAULT 1 CHECK (schema_version > 0),
    aggregate_type text,
    aggregate_id   text,
    sequence       bigint,
    correlation_id text,
    causation_id   text,
    producer       text,
    occurred_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    traceparent    text,
    tracestate     text,
    headers        json,
    business_key   text        COLLATE "C",
    payload        json        NOT NULL,
    CHECK ((aggregate_type IS NULL) = (aggregate_id IS NULL))
);

CREATE INDEX outbox_scheduled_due ON outbox_scheduled (due_at, id);

CREATE UNIQUE INDEX outbox_scheduled_business_key
    ON outbox_scheduled (event_type COLLATE "C", business_key)
    WHERE business_key IS NOT NULL;

INSERT INTO outbox_migration (version, name) VALUES (4, 'scheduled');
