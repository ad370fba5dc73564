-- outbox-runtime, migration 1 for SQLite: the outbox as an append-only log, the relay's
-- positions and leases, the journal of what was published, and the inbox.
-- Times are Unix milliseconds by the clock of the database's host.

CREATE TABLE outbox_migration (
    version    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    applied_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

-- Rows are never updated. `shard` may be left out by a writer in another language: the relay
-- computes it. AUTOINCREMENT keeps an id from being given twice.
CREATE TABLE outbox_message (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
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

CREATE UNIQUE INDEX outbox_message_business_key
    ON outbox_message (event_type, business_key)
    WHERE business_key IS NOT NULL;

-- Up to `position` all of the shard is published. `epoch` fences off an owner that lost its lease.
CREATE TABLE outbox_shard (
    shard       INTEGER PRIMARY KEY,
    position    INTEGER NOT NULL DEFAULT 0,
    epoch       INTEGER NOT NULL DEFAULT 0,
    owner       BLOB,
    lease_until INTEGER
);

INSERT INTO outbox_shard (shard)
WITH RECURSIVE shards (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM shards WHERE n < 63)
SELECT n FROM shards;

CREATE TABLE outbox_relay (
    instance    BLOB PRIMARY KEY,
    started_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    lease_until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE outbox_journal (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    instance      BLOB    NOT NULL,
    from_position INTEGER NOT NULL,
    to_position   INTEGER NOT NULL,
    messages      INTEGER NOT NULL,
    published_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

CREATE TABLE inbox_message (
    consumer        TEXT    NOT NULL,
    idempotency_key TEXT    NOT NULL,
    message_id      BLOB    NOT NULL,
    event_type      TEXT    NOT NULL,
    processed_at    INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    PRIMARY KEY (consumer, idempotency_key)
) WITHOUT ROWID;

INSERT INTO outbox_migration (version, name) VALUES (1, 'outbox');
