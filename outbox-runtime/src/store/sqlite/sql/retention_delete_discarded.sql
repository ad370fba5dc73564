-- ?1 before which time, ?2 after which id, ?3 up to which.
DELETE FROM outbox_discarded AS log
WHERE log.discarded_at < ?1 AND log.id > ?2 AND log.id <= ?3
