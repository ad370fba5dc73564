-- outbox-runtime, migration 1 for PostgreSQL: the outbox as an append-only log, the relay's
-- positions and leases, the journal of what was published, and the inbox.

CREATE TABLE outbox_migration (
    version    bigint      PRIMARY KEY,
    name       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Rows are never updated. `shard` may be left out by a writer in another language: the relay
-- computes it. CACHE 1 is part of the proof that no row is skipped: see the relay's documentation.
CREATE TABLE outbox_message (
    id             bigint      GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
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

CREATE UNIQUE INDEX outbox_message_business_key
    ON outbox_message (event_type COLLATE "C", business_key)
    WHERE business_key IS NOT NULL;

-- Up to `position` all of the shard is published. `epoch` fences off an owner that lost its lease.
CREATE TABLE outbox_shard (
    shard       smallint    PRIMARY KEY,
    position    bigint      NOT NULL DEFAULT 0,
    epoch       bigint      NOT NULL DEFAULT 0,
    owner       uuid,
    lease_until timestamptz
) WITH (fillfactor = 50);

INSERT INTO outbox_shard (shard) SELECT generate_series(0, 63);

CREATE TABLE outbox_relay (
    instance    uuid        PRIMARY KEY,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL
);

CREATE TABLE outbox_journal (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance      uuid        NOT NULL,
    from_position bigint      NOT NULL,
    to_position   bigint      NOT NULL,
    messages      integer     NOT NULL,
    published_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE inbox_message (
    consumer        text        COLLATE "C" NOT NULL,
    idempotency_key text        COLLATE "C" NOT NULL,
    message_id      uuid        NOT NULL,
    event_type      text        NOT NULL,
    processed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, idempotency_key)
);

INSERT INTO outbox_migration (version, name) VALUES (1, 'outbox');
