-- outbox-runtime, migration 2 for PostgreSQL: what the relay could not publish is parked.

-- Rows of the log that wait, copied byte for byte. A lane is an ordering key. It has one head, that
-- is 'failing' (tried again at `next_attempt_at`) or 'dead' (until somebody decides), and what is
-- 'waiting' behind that. Who takes a head away makes the lowest waiting row the new one: 'failing',
-- due at once. Who has a dead row tried again makes it 'failing', due at once, with 0 attempts.
-- Only the shard's owner adds rows.
CREATE TABLE outbox_parked (
    id              bigint      PRIMARY KEY,
    shard           smallint    NOT NULL CHECK (shard BETWEEN 0 AND 63),
    lane            text        COLLATE "C" NOT NULL,
    state           text        COLLATE "C" NOT NULL CHECK (state IN ('dead', 'failing', 'waiting')),
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    failing_since   timestamptz,
    parked_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_cause      text,
    message_id      uuid        NOT NULL,
    event_type      text        NOT NULL,
    schema_version  integer     NOT NULL,
    aggregate_type  text,
    aggregate_id    text,
    sequence        bigint,
    correlation_id  text,
    causation_id    text,
    producer        text,
    occurred_at     timestamptz NOT NULL,
    traceparent     text,
    tracestate      text,
    headers         json,
    business_key    text        COLLATE "C",
    payload         json        NOT NULL,
    CHECK ((state = 'failing') = (next_attempt_at IS NOT NULL))
);

-- The states' names are in the order in which a lane's head is looked for.
CREATE INDEX outbox_parked_lane ON outbox_parked (shard, lane, state, id);

CREATE INDEX outbox_parked_due ON outbox_parked (next_attempt_at) WHERE state = 'failing';

-- The newest failed attempts of each parked row.
CREATE TABLE outbox_parked_attempt (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parked_id bigint      NOT NULL REFERENCES outbox_parked (id) ON DELETE CASCADE,
    attempt   integer     NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    cause     text        NOT NULL
);

CREATE INDEX outbox_parked_attempt_of ON outbox_parked_attempt (parked_id, id);

INSERT INTO outbox_migration (version, name) VALUES (2, 'parking');
