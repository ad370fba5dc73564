-- Two runs that start together make the table one after the other.
SELECT pg_advisory_xact_lock(7);

-- Payment's own table. The checks are a second lock on the door: the aggregate never overdraws.
CREATE TABLE IF NOT EXISTS payment_accounts (
    customer_id  TEXT    NOT NULL PRIMARY KEY,
    credit_cents BIGINT  NOT NULL,
    spent_cents  BIGINT  NOT NULL CHECK (spent_cents BETWEEN 0 AND credit_cents),
    version      BIGINT  NOT NULL
);
