SELECT EXISTS (SELECT FROM inbox_parked WHERE consumer = $1 AND lane = $2 AND holds)
