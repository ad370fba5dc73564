-- ?1 id, ?2 how many attempts are kept.
DELETE FROM outbox_parked_attempt
WHERE id IN (
    SELECT old.id
    FROM outbox_parked_attempt AS old
    WHERE old.parked_id = ?1
    ORDER BY old.id DESC
    LIMIT -1 OFFSET ?2
)
