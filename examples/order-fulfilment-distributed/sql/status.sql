-- What one service's database says, in one statement and so of one moment.
--
-- The relay's position also moves past what it parks, so parked events are not counted as published.
SELECT
    (SELECT count(*) FROM outbox_message) AS events,
    (SELECT count(*)
     FROM outbox_message AS message
     JOIN outbox_shard AS own ON own.shard = message.shard
     WHERE message.id <= own.position)
        - (SELECT count(*) FROM outbox_parked) AS published,
    -- How often its events have to be handled, by itself and the others.
    (SELECT coalesce(sum(CASE event_type
        WHEN 'OrderPlaced' THEN 2 WHEN 'OrderCancelled' THEN 2
        WHEN 'OrderConfirmed' THEN 0 WHEN 'StockReleased' THEN 0 WHEN 'PaymentRefunded' THEN 0
        ELSE 1 END), 0)::bigint FROM outbox_message) AS to_handle,
    (SELECT count(*) FROM inbox_message) AS handled,
    (SELECT count(*) FROM outbox_parked) AS parked_in_outbox,
    (SELECT count(*) FROM inbox_parked) AS parked_in_inbox,
    (SELECT coalesce(sum(duplicates), 0)::bigint FROM fulfilment_process) AS duplicates
