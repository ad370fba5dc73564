-- outbox-runtime, migration 5 for SQLite: removing what is finished, or moving it to archives.
-- Times are Unix milliseconds by the clock of the database's host.

-- One row: which instance cleans up.
CREATE TABLE outbox_cleaner (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    owner       BLOB,
    lease_until INTEGER
);

INSERT INTO outbox_cleaner (id) VALUES (1);

CREATE INDEX inbox_message_processed_at ON inbox_message (processed_at);

CREATE TABLE outbox_message_archive (
    id             INTEGER PRIMARY KEY,
    shard          INTEGER,
    message_id     BLOB    NOT NULL,
    event_type     TEXT    NOT NULL,
    schema_version INTEGER NOT NULL,
    aggregate_type TEXT,
    aggregate_id   TEXT,
    sequence       INTEGER,
    correlation_id TEXT,
    causation_id   TEXT,
    producer       TEXT,
    occurred_at    INTEGER NOT NULL,
    traceparent    TEXT,
    tracestate     TEXT,
    headers        TEXT,
    business_key   TEXT,
    payload        TEXT    NOT NULL,
    archived_at    INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

CREATE TABLE outbox_journal_archive (
    id            INTEGER PRIMARY KEY,
    instance      BLOB    NOT NULL,
    from_position INTEGER NOT NULL,
    to_position   INTEGER NOT NULL,
    messages      INTEGER NOT NULL,
    published_at  INTEGER NOT NULL,
    archived_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

-- No key: a message that comes again after its row was archived is handled, and archived, again.
CREATE TABLE inbox_message_archive (
    consumer        TEXT    NOT NULL,
    idempotency_key TEXT    NOT NULL,
    message_id      BLOB    NOT NULL,
    event_type      TEXT    NOT NULL,
    processed_at    INTEGER NOT NULL,
    archived_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

INSERT INTO outbox_migration (version, name) VALUES (5, 'retention');
