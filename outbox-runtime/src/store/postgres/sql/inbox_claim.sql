-- $1 consumer, $2 idempotency key, $3 message id, $4 event type, $5 lane, NULL for one that may pass.
INSERT INTO inbox_message (consumer, idempotency_key, message_id, event_type)
SELECT $1, $2, $3, $4
WHERE NOT EXISTS (SELECT FROM inbox_parked WHERE consumer = $1 AND lane = $5 AND holds)
ON CONFLICT (consumer, idempotency_key) DO NOTHING
