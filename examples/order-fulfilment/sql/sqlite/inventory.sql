-- Inventory's own table. The checks are a second lock on the door: the aggregate never oversells.
CREATE TABLE IF NOT EXISTS inventory_stock (
    sku     TEXT    NOT NULL PRIMARY KEY,
    opening INTEGER NOT NULL,
    on_hand INTEGER NOT NULL CHECK (on_hand BETWEEN 0 AND opening),
    version INTEGER NOT NULL
);
