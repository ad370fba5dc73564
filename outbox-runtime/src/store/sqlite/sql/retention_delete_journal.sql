-- ?1 before which time, ?2 after which id, ?3 up to which.
DELETE FROM outbox_journal WHERE published_at < ?1 AND id > ?2 AND id <= ?3
