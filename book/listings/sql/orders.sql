-- ANCHOR: orders
CREATE TABLE orders (
    id          TEXT    PRIMARY KEY,
    state       TEXT    NOT NULL, -- column = "state"
    total_cents INTEGER NOT NULL, -- embed: the field's name and the part's
    total_iso   TEXT    NOT NULL,
    lines       TEXT    NOT NULL, -- json
    note        TEXT,
    version     INTEGER NOT NULL  -- the root's
);
-- ANCHOR_END: orders

CREATE TABLE basket (
    id      TEXT    PRIMARY KEY,
    version INTEGER NOT NULL
);

CREATE TABLE basket_line (
    basket_id TEXT    NOT NULL REFERENCES basket (id) ON DELETE CASCADE,
    sku       TEXT    NOT NULL,
    quantity  INTEGER NOT NULL,
    PRIMARY KEY (basket_id, sku)
);
