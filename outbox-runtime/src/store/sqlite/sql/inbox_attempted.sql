INSERT INTO inbox_parked_attempt (parked_id, attempt, cause) VALUES ($1, $2, $3)
