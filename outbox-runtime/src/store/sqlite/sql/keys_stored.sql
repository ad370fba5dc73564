-- ?1 [[event type, business key], ...].
SELECT count(*)
FROM json_each(?1) AS given
JOIN outbox_message AS message
    ON message.event_type = given.value ->> 0 AND message.business_key = given.value ->> 1
