-- Two runs that start together make the table one after the other.
SELECT pg_advisory_xact_lock(7);

-- Ordering's own table.
CREATE TABLE IF NOT EXISTS ordering_orders (
    id          TEXT    NOT NULL PRIMARY KEY,
    customer_id TEXT    NOT NULL,
    sku         TEXT    NOT NULL,
    quantity    BIGINT  NOT NULL CHECK (quantity > 0),
    total_cents BIGINT  NOT NULL CHECK (total_cents > 0),
    status      TEXT    NOT NULL CHECK (status IN ('placed', 'confirmed', 'cancelled')),
    stock       TEXT    NOT NULL CHECK (stock IN ('awaited', 'yes', 'no')),
    payment     TEXT    NOT NULL CHECK (payment IN ('awaited', 'yes', 'no')),
    version     BIGINT  NOT NULL
);
