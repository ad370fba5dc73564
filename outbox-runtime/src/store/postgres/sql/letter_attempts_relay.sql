SELECT attempt.attempt, attempt.failed_at, attempt.cause
FROM outbox_parked_attempt AS attempt
WHERE attempt.parked_id = $1
ORDER BY attempt.id
