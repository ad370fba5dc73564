DELETE FROM outbox_scheduled WHERE event_type = ?1 AND business_key = ?2
