-- $1 age in seconds, $2 after which id, $3 how many of the newest stay, $4 how many to look at.
WITH seen AS MATERIALIZED (
    SELECT log.id, log.discarded_at < statement_timestamp() - $1 * interval '1 second' AS is_old
    FROM outbox_discarded AS log
    WHERE log.id > $2
        AND ($3 = 0 OR log.id < (
            SELECT newest.id FROM outbox_discarded AS newest ORDER BY newest.id DESC OFFSET greatest($3 - 1, 0) LIMIT 1
        ))
    ORDER BY log.id
    LIMIT $4
),
old AS MATERIALIZED (
    SELECT log.id
    FROM outbox_discarded AS log
    JOIN seen ON seen.id = log.id
    WHERE seen.is_old
    ORDER BY log.id
    FOR UPDATE OF log SKIP LOCKED
),
gone AS (
    DELETE FROM outbox_discarded AS log USING old WHERE log.id = old.id RETURNING log.*
)
SELECT (SELECT max(id) FROM seen), (SELECT count(*) FROM seen), (SELECT count(*) FROM gone)
