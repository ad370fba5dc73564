-- outbox-runtime, migration 4 for SQLite: events that are scheduled for later.
-- Times are Unix milliseconds by the clock of the database's host.

-- A row leaves when it is due, for `outbox_message`, or when it is cancelled. `occurred_at` says
-- when it was raised.
CREATE TABLE outbox_scheduled (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    due_at         INTEGER NOT NULL,
    shard          INTEGER CHECK (shard BETWEEN 0 AND 63),
    message_id     BLOB    NOT NULL DEFAULT (randomblob(16)) CHECK (length(message_id) = 16),
    event_type     TEXT    NOT NULL,
    schema_version INTEGER NOT NULL DEFAULT 1 CHECK (schema_version > 0),
    aggregate_type TEXT,
    aggregate_id   TEXT,
    sequence       INTEGER,
    correlation_id TEXT,
    causation_id   TEXT,
    producer       TEXT,
    occurred_at    INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    traceparent    TEXT,
    tracestate     TEXT,
    headers        TEXT CHECK (headers IS NULL OR json_valid(headers)),
    business_key   TEXT,
    payload        TEXT NOT NULL CHECK (json_valid(payload)),
    CHECK ((aggregate_type IS NULL) = (aggregate_id IS NULL))
);

CREATE INDEX outbox_scheduled_due ON outbox_scheduled (due_at, id);

CREATE UNIQUE INDEX outbox_scheduled_business_key
    ON outbox_scheduled (event_type, business_key)
    WHERE business_key IS NOT NULL;

INSERT INTO outbox_migration (version, name) VALUES (4, 'scheduled');
