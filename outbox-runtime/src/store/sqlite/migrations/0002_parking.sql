-- outbox-runtime, migration 2 for SQLite: what the relay could not publish is parked.

-- Rows of the log that wait, copied byte for byte. A lane is an ordering key. It has one head, that
-- is 'failing' (tried again at `next_attempt_at`) or 'dead' (until somebody decides), and what is
-- 'waiting' behind that. Who takes a head away makes the lowest waiting row the new one: 'failing',
-- due at once. Who has a dead row tried again makes it 'failing', due at once, with 0 attempts.
-- Only the shard's owner adds rows.
CREATE TABLE outbox_parked (
    id              INTEGER PRIMARY KEY,
    shard           INTEGER NOT NULL CHECK (shard BETWEEN 0 AND 63),
    lane            TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('dead', 'failing', 'waiting')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER,
    failing_since   INTEGER,
    parked_at       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    last_cause      TEXT,
    message_id      BLOB    NOT NULL,
    event_type      TEXT    NOT NULL,
    schema_version  INTEGER NOT NULL,
    aggregate_type  TEXT,
    aggregate_id    TEXT,
    sequence        INTEGER,
    correlation_id  TEXT,
    causation_id    TEXT,
    producer        TEXT,
    occurred_at     INTEGER NOT NULL,
    traceparent     TEXT,
    tracestate      TEXT,
    headers         TEXT,
    business_key    TEXT,
    payload         TEXT    NOT NULL,
    CHECK ((state = 'failing') = (next_attempt_at IS NOT NULL))
);

-- The states' names are in the order in which a lane's head is looked for.
CREATE INDEX outbox_parked_lane ON outbox_parked (shard, lane, state, id);

CREATE INDEX outbox_parked_due ON outbox_parked (next_attempt_at) WHERE state = 'failing';

-- The newest failed attempts of each parked row. There is no foreign key, since in SQLite one
-- can't name an attached database: who deletes a parked row deletes these as well.
CREATE TABLE outbox_parked_attempt (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    parked_id INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    failed_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    cause     TEXT    NOT NULL
);

CREATE INDEX outbox_parked_attempt_of ON outbox_parked_attempt (parked_id, id);

INSERT INTO outbox_migration (version, name) VALUES (2, 'parking');
