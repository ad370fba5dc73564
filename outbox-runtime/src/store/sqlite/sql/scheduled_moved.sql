-- ?1 now, ?2 how many.
DELETE FROM outbox_scheduled
WHERE id IN (SELECT id FROM outbox_scheduled WHERE due_at <= ?1 ORDER BY due_at, id LIMIT ?2)
