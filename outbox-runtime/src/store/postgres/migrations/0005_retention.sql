-- outbox-runtime, migration 5 for PostgreSQL: removing what is finished, or moving it to archives.

-- One row: which instance cleans up.
CREATE TABLE outbox_cleaner (
    id          smallint    PRIMARY KEY CHECK (id = 1),
    owner       uuid,
    lease_until timestamptz
);

INSERT INTO outbox_cleaner (id) VALUES (1);

CREATE INDEX inbox_message_processed_at ON inbox_message (processed_at);

CREATE TABLE outbox_message_archive (
    id             bigint      PRIMARY KEY,
    shard          smallint,
    message_id     uuid        NOT NULL,
    event_type     text        NOT NULL,
    schema_version integer     NOT NULL,
    aggregate_type text,
    aggregate_id   text,
    sequence       bigint,
    correlation_id text,
    causation_id   text,
    producer       text,
    occurred_at    timestamptz NOT NULL,
    traceparent    text,
    tracestate     text,
    headers        json,
    business_key   text        COLLATE "C",
    payload        json        NOT NULL,
    archived_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE outbox_journal_archive (
    id            bigint      PRIMARY KEY,
    instance      uuid        NOT NULL,
    from_position bigint      NOT NULL,
    to_position   bigint      NOT NULL,
    messages      integer     NOT NULL,
    published_at  timestamptz NOT NULL,
    archived_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- No key: a message that comes again after its row was archived is handled, and archived, again.
CREATE TABLE inbox_message_archive (
    consumer        text        COLLATE "C" NOT NULL,
    idempotency_key text        COLLATE "C" NOT NULL,
    message_id      uuid        NOT NULL,
    event_type      text        NOT NULL,
    processed_at    timestamptz NOT NULL,
    archived_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

INSERT INTO outbox_migration (version, name) VALUES (5, 'retention');
