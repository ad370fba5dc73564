INSERT INTO outbox_journal (instance, from_position, to_position, messages) VALUES (?1, ?2, ?3, ?4)
