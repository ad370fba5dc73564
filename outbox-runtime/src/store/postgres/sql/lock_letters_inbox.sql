-- $1 ids. Says which could be locked; a consumer that handles one, or another operator, is not
-- waited for.
SELECT parked.id
FROM inbox_parked AS parked
WHERE parked.id = ANY ($1::bigint[])
ORDER BY parked.id
FOR UPDATE SKIP LOCKED
