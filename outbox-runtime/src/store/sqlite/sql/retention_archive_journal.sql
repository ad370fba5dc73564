-- ?1 before which time, ?2 after which id, ?3 up to which.
INSERT INTO outbox_journal_archive (
    id, instance, from_position, to_position, messages, published_at
)
SELECT
    id, instance, from_position, to_position, messages, published_at
FROM outbox_journal
WHERE published_at < ?1 AND id > ?2 AND id <= ?3
