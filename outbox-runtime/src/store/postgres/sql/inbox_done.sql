SELECT EXISTS (SELECT FROM inbox_message WHERE consumer = $1 AND idempotency_key = $2)
