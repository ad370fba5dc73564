-- ANCHOR: insert
INSERT INTO outbox_message (event_type, aggregate_type, aggregate_id, sequence, payload)
VALUES ('LampSwitched', 'Lamp', 'kitchen', 1, '{"on":true}');
-- ANCHOR_END: insert
