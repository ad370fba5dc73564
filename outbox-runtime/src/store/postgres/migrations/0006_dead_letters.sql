-- outbox-runtime, migration 6 for PostgreSQL: what operators do with dead letters, and why.

-- What was given up by an operator: the parked row as it was, with the causes of its newest failed
-- attempts as JSON: [{"attempt": 1, "failed_at": "...", "cause": "..."}, ...]. `letter_id` is the
-- id that it had in outbox_parked (side 'relay') or inbox_parked (side 'inbox').
CREATE TABLE outbox_discarded (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    side            text        COLLATE "C" NOT NULL CHECK (side IN ('relay', 'inbox')),
    letter_id       bigint      NOT NULL,
    consumer        text        COLLATE "C" NOT NULL DEFAULT '',
    shard           smallint,
    lane            text        COLLATE "C" NOT NULL,
    idempotency_key text        COLLATE "C",
    attempts        integer     NOT NULL,
    failing_since   timestamptz,
    parked_at       timestamptz NOT NULL,
    last_cause      text,
    causes          json        NOT NULL,
    discarded_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    message_id      uuid        NOT NULL,
    event_type      text        NOT NULL,
    schema_version  bigint      NOT NULL,
    aggregate_type  text,
    aggregate_id    text,
    sequence        bigint,
    correlation_id  text,
    causation_id    text,
    producer        text,
    occurred_at     timestamptz NOT NULL,
    occurred_nanos  integer,
    traceparent     text,
    tracestate      text,
    headers         json,
    business_key    text        COLLATE "C",
    payload         text        NOT NULL,
    UNIQUE (side, letter_id)
);

CREATE TABLE outbox_discarded_archive (
    id              bigint      PRIMARY KEY,
    side            text        COLLATE "C" NOT NULL,
    letter_id       bigint      NOT NULL,
    consumer        text        COLLATE "C" NOT NULL,
    shard           smallint,
    lane            text        COLLATE "C" NOT NULL,
    idempotency_key text        COLLATE "C",
    attempts        integer     NOT NULL,
    failing_since   timestamptz,
    parked_at       timestamptz NOT NULL,
    last_cause      text,
    causes          json        NOT NULL,
    discarded_at    timestamptz NOT NULL,
    message_id      uuid        NOT NULL,
    event_type      text        NOT NULL,
    schema_version  bigint      NOT NULL,
    aggregate_type  text,
    aggregate_id    text,
    sequence        bigint,
    correlation_id  text,
    causation_id    text,
    producer        text,
    occurred_at     timestamptz NOT NULL,
    occurred_nanos  integer,
    traceparent     text,
    tracestate      text,
    headers         json,
    business_key    text        COLLATE "C",
    payload         text        NOT NULL,
    archived_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Who did what to which letter, and why. One call's notes have the same `run`.
CREATE TABLE outbox_operator_note (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run        uuid        NOT NULL,
    act        text        NOT NULL CHECK (act IN ('requeue', 'discard')),
    side       text        COLLATE "C" NOT NULL CHECK (side IN ('relay', 'inbox')),
    letter_id  bigint      NOT NULL,
    consumer   text        COLLATE "C" NOT NULL DEFAULT '',
    message_id uuid        NOT NULL,
    event_type text        NOT NULL,
    operator   text        NOT NULL,
    reason     text        NOT NULL,
    noted_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX outbox_operator_note_message ON outbox_operator_note (message_id);

CREATE TABLE outbox_operator_note_archive (
    id          bigint      PRIMARY KEY,
    run         uuid        NOT NULL,
    act         text        NOT NULL,
    side        text        COLLATE "C" NOT NULL,
    letter_id   bigint      NOT NULL,
    consumer    text        COLLATE "C" NOT NULL,
    message_id  uuid        NOT NULL,
    event_type  text        NOT NULL,
    operator    text        NOT NULL,
    reason      text        NOT NULL,
    noted_at    timestamptz NOT NULL,
    archived_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

INSERT INTO outbox_migration (version, name) VALUES (6, 'dead_letters');
