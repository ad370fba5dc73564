-- All figures of the reconciliation, in one statement and so of one moment, on SQLite and PostgreSQL.
-- The contexts' tables, the events and the inbox are three independent witnesses of what happened.
WITH
fact AS (
    SELECT event_type,
           payload ->> 'order_id'                     AS order_id,
           payload ->> 'customer_id'                  AS customer_id,
           payload ->> 'sku'                          AS sku,
           CAST(payload ->> 'quantity' AS BIGINT)     AS pieces,
           CAST(payload ->> 'amount_cents' AS BIGINT) AS cents
    FROM outbox_message
),
-- What the events say of one order.
story AS (
    SELECT order_id,
           SUM(CASE WHEN event_type = 'OrderPlaced' THEN 1 ELSE 0 END)                               AS placed,
           SUM(CASE WHEN event_type IN ('StockReserved', 'StockRejected') THEN 1 ELSE 0 END)         AS stock,
           SUM(CASE WHEN event_type IN ('PaymentCaptured', 'PaymentDeclined') THEN 1 ELSE 0 END)     AS payment,
           SUM(CASE WHEN event_type IN ('OrderConfirmed', 'OrderCancelled') THEN 1 ELSE 0 END)       AS ended,
           SUM(CASE event_type WHEN 'StockReserved' THEN 1 WHEN 'StockReleased' THEN -1 ELSE 0 END)  AS reserved,
           SUM(CASE event_type WHEN 'PaymentCaptured' THEN 1 WHEN 'PaymentRefunded' THEN -1 ELSE 0 END) AS paid
    FROM fact GROUP BY order_id
),
-- What the events say of one shelf and one account.
shelf AS (
    SELECT sku, SUM(CASE event_type WHEN 'StockReserved' THEN pieces WHEN 'StockReleased' THEN -pieces ELSE 0 END) AS pieces
    FROM fact WHERE event_type IN ('StockReserved', 'StockReleased') GROUP BY sku
),
account AS (
    SELECT customer_id, SUM(CASE event_type WHEN 'PaymentCaptured' THEN cents ELSE -cents END) AS cents
    FROM fact WHERE event_type IN ('PaymentCaptured', 'PaymentRefunded') GROUP BY customer_id
),
-- What the confirmed orders say of them.
sold AS (
    SELECT sku, SUM(quantity) AS pieces FROM ordering_orders WHERE status = 'confirmed' GROUP BY sku
),
bought AS (
    SELECT customer_id, SUM(total_cents) AS cents FROM ordering_orders WHERE status = 'confirmed' GROUP BY customer_id
),
subscription (consumer, event_type) AS (
    VALUES ('inventory.reserve', 'OrderPlaced'),
           ('payment.capture', 'OrderPlaced'),
           ('ordering.stock-reserved', 'StockReserved'),
           ('ordering.stock-rejected', 'StockRejected'),
           ('ordering.payment-captured', 'PaymentCaptured'),
           ('ordering.payment-declined', 'PaymentDeclined'),
           ('inventory.release', 'OrderCancelled'),
           ('payment.refund', 'OrderCancelled')
)
SELECT 'orders' AS name, COUNT(*) AS value FROM ordering_orders
UNION ALL SELECT 'open', COUNT(*) FROM ordering_orders WHERE status = 'placed'
UNION ALL SELECT 'confirmed', COUNT(*) FROM ordering_orders WHERE status = 'confirmed'
UNION ALL SELECT 'cancelled', COUNT(*) FROM ordering_orders WHERE status = 'cancelled'
UNION ALL SELECT 'order_changes', CAST(COALESCE(SUM(version), 0) AS BIGINT) FROM ordering_orders
UNION ALL SELECT 'confirmed_cents', CAST(COALESCE(SUM(cents), 0) AS BIGINT) FROM bought
UNION ALL SELECT 'confirmed_pieces', CAST(COALESCE(SUM(pieces), 0) AS BIGINT) FROM sold
UNION ALL SELECT 'spent_cents', CAST(COALESCE(SUM(spent_cents), 0) AS BIGINT) FROM payment_accounts
UNION ALL SELECT 'taken_pieces', CAST(COALESCE(SUM(opening - on_hand), 0) AS BIGINT) FROM inventory_stock
UNION ALL SELECT 'captured', COUNT(*) FROM fact WHERE event_type = 'PaymentCaptured'
UNION ALL SELECT 'captured_cents', CAST(COALESCE(SUM(cents), 0) AS BIGINT) FROM fact WHERE event_type = 'PaymentCaptured'
UNION ALL SELECT 'declined', COUNT(*) FROM fact WHERE event_type = 'PaymentDeclined'
UNION ALL SELECT 'refunded', COUNT(*) FROM fact WHERE event_type = 'PaymentRefunded'
UNION ALL SELECT 'refunded_cents', CAST(COALESCE(SUM(cents), 0) AS BIGINT) FROM fact WHERE event_type = 'PaymentRefunded'
UNION ALL SELECT 'reserved', COUNT(*) FROM fact WHERE event_type = 'StockReserved'
UNION ALL SELECT 'reserved_pieces', CAST(COALESCE(SUM(pieces), 0) AS BIGINT) FROM fact WHERE event_type = 'StockReserved'
UNION ALL SELECT 'rejected', COUNT(*) FROM fact WHERE event_type = 'StockRejected'
UNION ALL SELECT 'released', COUNT(*) FROM fact WHERE event_type = 'StockReleased'
UNION ALL SELECT 'released_pieces', CAST(COALESCE(SUM(pieces), 0) AS BIGINT) FROM fact WHERE event_type = 'StockReleased'
UNION ALL SELECT 'events', COUNT(*) FROM outbox_message
UNION ALL SELECT 'published', COUNT(*) FROM outbox_message m JOIN outbox_shard s ON s.shard = m.shard WHERE m.id <= s.position
UNION ALL SELECT 'to_handle', COUNT(*) FROM outbox_message m JOIN subscription s ON s.event_type = m.event_type
UNION ALL SELECT 'handled', COUNT(*) FROM inbox_message
-- A message that one of its consumers has not handled, or an inbox row without its message.
UNION ALL SELECT 'wrong_handlings', COUNT(*)
    FROM (SELECT consumer, message_id
          FROM (SELECT s.consumer, m.message_id, 1 AS n
                FROM outbox_message m JOIN subscription s ON s.event_type = m.event_type
                UNION ALL
                SELECT consumer, message_id, -1 FROM inbox_message) handling
          GROUP BY consumer, message_id HAVING SUM(n) <> 0) wrong
UNION ALL SELECT 'wrong_orders', COUNT(*)
    FROM ordering_orders o LEFT JOIN story s ON s.order_id = o.id
    WHERE s.order_id IS NULL OR s.placed <> 1 OR s.stock <> 1 OR s.payment <> 1 OR s.ended <> 1
       OR s.reserved <> (CASE o.status WHEN 'confirmed' THEN 1 ELSE 0 END)
       OR s.paid <> (CASE o.status WHEN 'confirmed' THEN 1 ELSE 0 END)
UNION ALL SELECT 'wrong_shelves', COUNT(*)
    FROM inventory_stock i LEFT JOIN shelf ON shelf.sku = i.sku LEFT JOIN sold ON sold.sku = i.sku
    WHERE i.opening - i.on_hand <> COALESCE(shelf.pieces, 0) OR i.opening - i.on_hand <> COALESCE(sold.pieces, 0)
UNION ALL SELECT 'wrong_accounts', COUNT(*)
    FROM payment_accounts a LEFT JOIN account ON account.customer_id = a.customer_id
    LEFT JOIN bought ON bought.customer_id = a.customer_id
    WHERE a.spent_cents <> COALESCE(account.cents, 0) OR a.spent_cents <> COALESCE(bought.cents, 0)
