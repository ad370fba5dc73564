-- The newest process of each name, with how long ago it wrote its row.
SELECT DISTINCT ON (name)
    name,
    broker,
    subscribed,
    health,
    extract(epoch FROM clock_timestamp() - seen_at)::float8 AS seen_ago,
    count(*) OVER (PARTITION BY name) AS starts
FROM fulfilment_process
ORDER BY name, started_at DESC, instance
