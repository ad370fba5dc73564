-- How many messages are parked, by whom and in which state; $1 how many of each table are counted.
SELECT 'relay' AS part, '' AS consumer, counted.state, count(*) AS messages
FROM (SELECT state FROM outbox_parked LIMIT $1) AS counted
GROUP BY counted.state
UNION ALL
SELECT 'inbox', counted.consumer, counted.state, count(*)
FROM (SELECT consumer, state FROM inbox_parked LIMIT $1) AS counted
GROUP BY counted.consumer, counted.state
