-- ?1 before which time, ?2 after which id, ?3 up to which.
DELETE FROM outbox_operator_note AS log
WHERE log.noted_at < ?1 AND log.id > ?2 AND log.id <= ?3
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
