DELETE FROM outbox_parked WHERE id = ?1
