-- $1 consumer, $2 idempotency key, $3 lane. Why a claim wrote nothing: the message was handled before,
-- or its lane is held. If neither holds any more, it was held, and is to be claimed again.
SELECT
    EXISTS (SELECT FROM inbox_message WHERE consumer = $1 AND idempotency_key = $2),
    EXISTS (SELECT FROM inbox_parked WHERE consumer = $1 AND lane = $3 AND holds)
