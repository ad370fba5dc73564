-- ?1 before which time, ?2 how many at most.
INSERT INTO inbox_message_archive (consumer, idempotency_key, message_id, event_type, processed_at)
SELECT consumer, idempotency_key, message_id, event_type, processed_at
FROM inbox_message
WHERE (consumer, idempotency_key) IN (
    SELECT consumer, idempotency_key
    FROM inbox_message
    WHERE processed_at < ?1
    ORDER BY processed_at, consumer, idempotency_key
    LIMIT ?2
)
