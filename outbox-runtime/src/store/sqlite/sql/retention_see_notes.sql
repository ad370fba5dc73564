-- ?1 after which id, ?2 how many of the newest stay, ?3 how many to look at.
SELECT max(id), count(*)
FROM (
    SELECT log.id
    FROM outbox_operator_note AS log
    WHERE log.id > ?1
        AND (?2 = 0 OR log.id < (
            SELECT newest.id FROM outbox_operator_note AS newest ORDER BY newest.id DESC LIMIT 1 OFFSET max(?2 - 1, 0)
        ))
        -- Not as long as its letter is to be seen.
        AND NOT EXISTS (
            SELECT 1 FROM outbox_parked AS parked WHERE log.side = 'relay' AND parked.id = log.letter_id
        )
        AND NOT EXISTS (
            SELECT 1 FROM inbox_parked AS parked WHERE log.side = 'inbox' AND parked.id = log.letter_id
        )
        AND NOT EXISTS (
            SELECT 1 FROM outbox_discarded AS gone WHERE gone.side = log.side AND gone.letter_id = log.letter_id
        )
    ORDER BY log.id
    LIMIT ?3
)
