-- ?1 before which time, ?2 how many at most.
DELETE FROM inbox_message
WHERE (consumer, idempotency_key) IN (
    SELECT consumer, idempotency_key
    FROM inbox_message
    WHERE processed_at < ?1
    ORDER BY processed_at, consumer, idempotency_key
    LIMIT ?2
)
