-- $1 ids, $2 run, $3 operator, $4 reason. Says how many are tried again from the start.
WITH tried AS (
    UPDATE inbox_parked AS parked
    SET state = 'failing', attempts = 0, next_attempt_at = clock_timestamp(), failing_since = NULL
    WHERE parked.id = ANY ($1::bigint[])
    RETURNING parked.*
),
noted AS (
    INSERT INTO outbox_operator_note (
        run, act, side, letter_id, consumer, message_id, event_type, operator, reason
    )
    SELECT $2, 'requeue', 'inbox', tried.id, tried.consumer, tried.message_id, tried.event_type, $3, $4
    FROM tried
    ORDER BY tried.id
)
SELECT count(*) FROM tried
