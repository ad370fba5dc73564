-- outbox-runtime, migration 6 for SQLite: what operators do with dead letters, and why.
-- Times are Unix milliseconds by the clock of the database's host.

-- What was given up by an operator: the parked row as it was, with the causes of its newest failed
-- attempts as JSON: [{"attempt": 1, "failed_at": "...", "cause": "..."}, ...]. `letter_id` is the
-- id that it had in outbox_parked (side 'relay') or inbox_parked (side 'inbox').
CREATE TABLE outbox_discarded (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    side            TEXT    NOT NULL CHECK (side IN ('relay', 'inbox')),
    letter_id       INTEGER NOT NULL,
    consumer        TEXT    NOT NULL DEFAULT '',
    shard           INTEGER,
    lane            TEXT    NOT NULL,
    idempotency_key TEXT,
    attempts        INTEGER NOT NULL,
    failing_since   INTEGER,
    parked_at       INTEGER NOT NULL,
    last_cause      TEXT,
    causes          TEXT    NOT NULL,
    discarded_at    INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
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
    occurred_nanos  INTEGER,
    traceparent     TEXT,
    tracestate      TEXT,
    headers         TEXT,
    business_key    TEXT,
    payload         TEXT    NOT NULL,
    UNIQUE (side, letter_id)
);

CREATE TABLE outbox_discarded_archive (
    id              INTEGER PRIMARY KEY,
    side            TEXT    NOT NULL,
    letter_id       INTEGER NOT NULL,
    consumer        TEXT    NOT NULL,
    shard           INTEGER,
    lane            TEXT    NOT NULL,
    idempotency_key TEXT,
    attempts        INTEGER NOT NULL,
    failing_since   INTEGER,
    parked_at       INTEGER NOT NULL,
    last_cause      TEXT,
    causes          TEXT    NOT NULL,
    discarded_at    INTEGER NOT NULL,
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
    occurred_nanos  INTEGER,
    traceparent     TEXT,
    tracestate      TEXT,
    headers         TEXT,
    business_key    TEXT,
    payload         TEXT    NOT NULL,
    archived_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

-- Who did what to which letter, and why. One call's notes have the same `run`.
CREATE TABLE outbox_operator_note (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run        BLOB    NOT NULL,
    act        TEXT    NOT NULL CHECK (act IN ('requeue', 'discard')),
    side       TEXT    NOT NULL CHECK (side IN ('relay', 'inbox')),
    letter_id  INTEGER NOT NULL,
    consumer   TEXT    NOT NULL DEFAULT '',
    message_id BLOB    NOT NULL,
    event_type TEXT    NOT NULL,
    operator   TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    noted_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

CREATE INDEX outbox_operator_note_message ON outbox_operator_note (message_id);

CREATE TABLE outbox_operator_note_archive (
    id          INTEGER PRIMARY KEY,
    run         BLOB    NOT NULL,
    act         TEXT    NOT NULL,
    side        TEXT    NOT NULL,
    letter_id   INTEGER NOT NULL,
    consumer    TEXT    NOT NULL,
    message_id  BLOB    NOT NULL,
    event_type  TEXT    NOT NULL,
    operator    TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    noted_at    INTEGER NOT NULL,
    archived_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

INSERT INTO outbox_migration (version, name) VALUES (6, 'dead_letters');
