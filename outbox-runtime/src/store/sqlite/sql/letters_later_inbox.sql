-- ?1 id, ?2 how many: the first ones that come later in its lane.
SELECT later.id
FROM inbox_parked AS letter
JOIN inbox_parked AS later
    ON later.consumer = letter.consumer
    AND later.lane = letter.lane
    AND later.holds
    AND later.id > letter.id
WHERE letter.id = ?1 AND letter.holds
ORDER BY later.id
LIMIT ?2
