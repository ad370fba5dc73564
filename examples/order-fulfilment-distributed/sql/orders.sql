SELECT
    count(*) AS placed,
    count(*) FILTER (WHERE status = 'confirmed') AS confirmed,
    count(*) FILTER (WHERE status = 'cancelled') AS cancelled
FROM ordering_orders
