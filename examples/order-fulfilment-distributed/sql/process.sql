-- Two processes that start together make the table one after the other.
SELECT pg_advisory_xact_lock(7);

-- What the processes that work on this database say of themselves: a row for each start. Counts that
-- live in a process's memory are kept here, so that a kill takes half a second of them at most.
CREATE TABLE IF NOT EXISTS fulfilment_process (
    instance   uuid        NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    broker     text        NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- It has subscribed, so that nothing that is published passes it by any more.
    subscribed boolean     NOT NULL DEFAULT false,
    duplicates bigint      NOT NULL DEFAULT 0,
    health     text        NOT NULL DEFAULT 'healthy'
);
