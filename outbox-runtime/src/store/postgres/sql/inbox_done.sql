-- $1 consumer, $2 idempotency key. A transaction of another level goes on to see what was there at its
-- first statement.
SELECT
    EXISTS (SELECT FROM inbox_message WHERE consumer = $1 AND idempotency_key = $2),
    current_setting('transaction_isolation') IN ('read committed', 'read uncommitted')
