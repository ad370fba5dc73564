-- How far the saga is, in one statement and so of one moment. When all that must be handled is
-- handled, nothing can follow any more: a handler's events commit together with its inbox row.
SELECT
    (SELECT COUNT(*) FROM ordering_orders),
    (SELECT COUNT(*) FROM ordering_orders WHERE status <> 'placed'),
    (SELECT CAST(COALESCE(SUM(CASE event_type
        WHEN 'OrderPlaced' THEN 2 WHEN 'OrderCancelled' THEN 2
        WHEN 'OrderConfirmed' THEN 0 WHEN 'StockReleased' THEN 0 WHEN 'PaymentRefunded' THEN 0
        ELSE 1 END), 0) AS BIGINT) FROM outbox_message),
    (SELECT COUNT(*) FROM inbox_message),
    (SELECT COUNT(*) FROM outbox_message),
    (SELECT COUNT(*) FROM outbox_message m JOIN outbox_shard s ON s.shard = m.shard WHERE m.id <= s.position)
