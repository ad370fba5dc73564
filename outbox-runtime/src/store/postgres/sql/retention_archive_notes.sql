-- $1 age in seconds, $2 after which id, $3 how many of the newest stay, $4 how many to look at.
WITH seen AS MATERIALIZED (
    SELECT log.id, log.noted_at < statement_timestamp() - $1 * interval '1 second' AS is_old
    FROM outbox_operator_note AS log
    WHERE log.id > $2
        AND ($3 = 0 OR log.id < (
            SELECT newest.id FROM outbox_operator_note AS newest ORDER BY newest.id DESC OFFSET greatest($3 - 1, 0) LIMIT 1
        ))
        -- Not as long as its letter is to be seen.
        AND NOT EXISTS (
            SELECT FROM outbox_parked AS parked WHERE log.side = 'relay' AND parked.id = log.letter_id
        )
        AND NOT EXISTS (
            SELECT FROM inbox_parked AS parked WHERE log.side = 'inbox' AND parked.id = log.letter_id
        )
        AND NOT EXISTS (
            SELECT FROM outbox_discarded AS gone WHERE gone.side = log.side AND gone.letter_id = log.letter_id
        )
    ORDER BY log.id
    LIMIT $4
),
old AS MATERIALIZED (
    SELECT log.id
    FROM outbox_operator_note AS log
    JOIN seen ON seen.id = log.id
    WHERE seen.is_old
    ORDER BY log.id
    FOR UPDATE OF log SKIP LOCKED
),
gone AS (
    DELETE FROM outbox_operator_note AS log USING old WHERE log.id = old.id RETURNING log.*
),
kept AS (
    INSERT INTO outbox_operator_note_archive (
        id, run, act, side, letter_id, consumer, message_id, event_type, operator, reason, noted_at
    )
    SELECT
        id, run, act, side, letter_id, consumer, message_id, event_type, operator, reason, noted_at
    FROM gone
)
SELECT (SELECT max(id) FROM seen), (SELECT count(*) FROM seen), (SELECT count(*) FROM gone)
