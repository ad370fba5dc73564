-- $1 event type, $2 business key. Waits for a relay that moves the row, and then finds none.
DELETE FROM outbox_scheduled WHERE event_type COLLATE "C" = $1 AND business_key = $2
