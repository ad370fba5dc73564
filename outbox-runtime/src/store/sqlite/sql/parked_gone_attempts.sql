DELETE FROM outbox_parked_attempt WHERE parked_id = ?1
