-- $1 consumers, $2 idempotency keys, $3 message ids, $4 event types, $5 lanes: one element for each claim,
-- no key twice. Answers with those that are not the transaction's: their places, from 1, and whether
-- their lanes are held. Who inserts in the order of the keys waits for others in one direction only.
WITH asked AS (
    SELECT *
    FROM unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[])
        WITH ORDINALITY AS claim (consumer, idempotency_key, message_id, event_type, lane, place)
), judged AS MATERIALIZED (
    SELECT
        asked.*,
        EXISTS (
            SELECT FROM inbox_parked AS parked
            WHERE parked.consumer = asked.consumer AND parked.lane = asked.lane AND parked.holds
        ) AS is_held
    FROM asked
), claimed AS (
    INSERT INTO inbox_message (consumer, idempotency_key, message_id, event_type)
    SELECT consumer, idempotency_key, message_id, event_type
    FROM judged
    WHERE NOT is_held
    ORDER BY place
    ON CONFLICT (consumer, idempotency_key) DO NOTHING
    RETURNING consumer, idempotency_key
)
SELECT judged.place, judged.is_held
FROM judged
LEFT JOIN claimed USING (consumer, idempotency_key)
WHERE claimed.consumer IS NULL
