-- outbox-runtime, migration 3 for PostgreSQL: messages that a consumer could not handle, in order
-- behind the one that failed, with what happened at each attempt.

-- state: 'failing' is tried again at next_attempt_at, 'waiting' was not tried yet, 'dead' waits for
-- an operator. The head of a lane is its lowest id among the rows that hold it; only a head is
-- tried. A row with holds = false is one that later messages have passed. `consumer` is empty for
-- an event that no handler takes, `idempotency_key` NULL where no key could be computed.
CREATE TABLE inbox_parked (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer        text        COLLATE "C" NOT NULL,
    lane            text        COLLATE "C" NOT NULL,
    idempotency_key text        COLLATE "C",
    state           text        NOT NULL CHECK (state IN ('failing', 'waiting', 'dead')),
    holds           boolean     NOT NULL DEFAULT true,
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    parked_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    failing_since   timestamptz,
    last_cause      text,
    message_id      uuid        NOT NULL,
    event_type      text        NOT NULL,
    schema_version  bigint      NOT NULL,
    aggregate_type  text,
    aggregate_id    text,
    sequence        bigint,
    correlation_id  text        NOT NULL,
    causation_id    text,
    producer        text        NOT NULL,
    occurred_at     timestamptz NOT NULL,
    -- The whole fraction of the second, which the time may be too coarse for.
    occurred_nanos  integer     NOT NULL,
    traceparent     text,
    tracestate      text,
    headers         json,
    payload         text        NOT NULL,
    UNIQUE (consumer, message_id)
);

CREATE INDEX inbox_parked_lane ON inbox_parked (consumer, lane, id) WHERE holds;

CREATE INDEX inbox_parked_passed ON inbox_parked (next_attempt_at) WHERE NOT holds AND state <> 'dead';

CREATE TABLE inbox_parked_attempt (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parked_id bigint      NOT NULL REFERENCES inbox_parked (id) ON DELETE CASCADE,
    attempt   integer     NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    cause     text        NOT NULL
);

CREATE INDEX inbox_parked_attempt_parked ON inbox_parked_attempt (parked_id, id);

INSERT INTO outbox_migration (version, name) VALUES (3, 'inbox_parking');
