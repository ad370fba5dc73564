-- Two runs that start together make the table one after the other.
SELECT pg_advisory_xact_lock(7);

-- Inventory's own table. The checks are a second lock on the door: the aggregate never oversells.
CREATE TABLE IF NOT EXISTS inventory_stock (
    sku     TEXT    NOT NULL PRIMARY KEY,
    opening BIGINT  NOT NULL,
    on_hand BIGINT  NOT NULL CHECK (on_hand BETWEEN 0 AND opening),
    version BIGINT  NOT NULL
);
