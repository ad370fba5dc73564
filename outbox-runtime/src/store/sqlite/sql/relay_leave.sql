DELETE FROM outbox_relay WHERE instance = ?1
