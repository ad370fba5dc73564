-- The names under which a service wrote lately; $1 the service.
SELECT DISTINCT recent.event_type
FROM (
    SELECT message.event_type, message.producer
    FROM outbox_message AS message
    ORDER BY message.id DESC
    LIMIT 1000
) AS recent
WHERE recent.producer = $1
ORDER BY recent.event_type
