-- ?1 before which time, ?2 after which id, ?3 up to which.
DELETE FROM outbox_message WHERE occurred_at < ?1 AND id > ?2 AND id <= ?3
