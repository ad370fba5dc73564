-- ?1 id, ?2 attempt, ?3 cause.
INSERT INTO outbox_parked_attempt (parked_id, attempt, cause) VALUES (?1, ?2, ?3)
