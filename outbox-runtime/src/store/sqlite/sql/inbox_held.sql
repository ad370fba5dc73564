SELECT EXISTS (SELECT 1 FROM inbox_parked WHERE consumer = $1 AND lane = $2 AND holds)
