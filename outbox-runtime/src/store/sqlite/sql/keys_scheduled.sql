-- ?1 [[event type, business key], ...].
SELECT count(*)
FROM json_each(?1) AS given
JOIN outbox_scheduled AS scheduled
    ON scheduled.event_type = given.value ->> 0 AND scheduled.business_key = given.value ->> 1
