-- outbox-runtime, migration 7 for SQLite: which instance of a service reads which part of a broker
-- that does not share its messages out by itself.

CREATE TABLE inbox_member (
    consumer_group TEXT    NOT NULL,
    instance       BLOB    NOT NULL,
    lease_until    INTEGER NOT NULL,
    PRIMARY KEY (consumer_group, instance)
);

-- A row for each partition that was ever asked for. No epoch: what a former owner still has in work
-- is told apart by the inbox.
CREATE TABLE inbox_partition (
    consumer_group TEXT    NOT NULL,
    partition      INTEGER NOT NULL CHECK (partition >= 0),
    owner          BLOB,
    lease_until    INTEGER,
    PRIMARY KEY (consumer_group, partition)
);

INSERT INTO outbox_migration (version, name) VALUES (7, 'partitions');
