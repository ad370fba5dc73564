-- outbox-runtime, migration 7 for PostgreSQL: which instance of a service reads which part of a broker
-- that does not share its messages out by itself.

CREATE TABLE inbox_member (
    consumer_group text        COLLATE "C" NOT NULL,
    instance       uuid        NOT NULL,
    lease_until    timestamptz NOT NULL,
    PRIMARY KEY (consumer_group, instance)
);

-- A row for each partition that was ever asked for. No epoch: what a former owner still has in work
-- is told apart by the inbox.
CREATE TABLE inbox_partition (
    consumer_group text        COLLATE "C" NOT NULL,
    partition      integer     NOT NULL CHECK (partition >= 0),
    owner          uuid,
    lease_until    timestamptz,
    PRIMARY KEY (consumer_group, partition)
);

INSERT INTO outbox_migration (version, name) VALUES (7, 'partitions');
