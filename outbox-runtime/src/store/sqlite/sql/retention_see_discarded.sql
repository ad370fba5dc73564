-- ?1 after which id, ?2 how many of the newest stay, ?3 how many to look at.
SELECT max(id), count(*)
FROM (
    SELECT log.id
    FROM outbox_discarded AS log
    WHERE log.id > ?1
        AND (?2 = 0 OR log.id < (
            SELECT newest.id FROM outbox_discarded AS newest ORDER BY newest.id DESC LIMIT 1 OFFSET max(?2 - 1, 0)
        ))
    ORDER BY log.id
    LIMIT ?3
)
