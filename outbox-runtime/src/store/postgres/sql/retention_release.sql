UPDATE outbox_cleaner SET owner = NULL, lease_until = NULL WHERE id = 1 AND owner = $1
