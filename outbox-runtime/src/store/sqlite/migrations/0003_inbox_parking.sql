-- outbox-runtime, migration 3 for SQLite: messages that a consumer could not handle, in order
-- behind the one that failed, with what happened at each attempt.

-- state: 'failing' is tried again at next_attempt_at, 'waiting' was not tried yet, 'dead' waits for
-- an operator. The head of a lane is its lowest id among the rows that hold it; only a head is
-- tried. A row with holds = 0 is one that later messages have passed. `consumer` is empty for an
-- event that no handler takes, `idempotency_key` NULL where no key could be computed.
CREATE TABLE inbox_parked (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer        TEXT    NOT NULL,
    lane            TEXT    NOT NULL,
    idempotency_key TEXT,
    state           TEXT    NOT NULL CHECK (state IN ('failing', 'waiting', 'dead')),
    holds           INTEGER NOT NULL DEFAULT 1,
    attempts        INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    parked_at       INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    failing_since   INTEGER,
    last_cause      TEXT,
    message_id      BLOB    NOT NULL CHECK (length(message_id) = 16),
    event_type      TEXT    NOT NULL,
    schema_version  INTEGER NOT NULL,
    aggregate_type  TEXT,
    aggregate_id    TEXT,
    sequence        INTEGER,
    correlation_id  TEXT    NOT NULL,
    causation_id    TEXT,
    producer        TEXT    NOT NULL,
    occurred_at     INTEGER NOT NULL,
    -- The whole fraction of the second, which the time is too coarse for.
    occurred_nanos  INTEGER NOT NULL,
    traceparent     TEXT,
    tracestate      TEXT,
    headers         TEXT CHECK (headers IS NULL OR json_valid(headers)),
    payload         TEXT    NOT NULL,
    UNIQUE (consumer, message_id)
);

CREATE INDEX inbox_parked_lane ON inbox_parked (consumer, lane, id) WHERE holds;

CREATE INDEX inbox_parked_passed ON inbox_parked (next_attempt_at) WHERE NOT holds AND state <> 'dead';

CREATE TABLE inbox_parked_attempt (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    parked_id INTEGER NOT NULL REFERENCES inbox_parked (id) ON DELETE CASCADE,
    attempt   INTEGER NOT NULL,
    failed_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    cause     TEXT    NOT NULL
);

CREATE INDEX inbox_parked_attempt_parked ON inbox_parked_attempt (parked_id, id);

INSERT INTO outbox_migration (version, name) VALUES (3, 'inbox_parking');
