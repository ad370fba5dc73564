INSERT INTO inbox_message (consumer, idempotency_key, message_id, event_type)
VALUES ($1, $2, $3, $4)
ON CONFLICT (consumer, idempotency_key) DO NOTHING
