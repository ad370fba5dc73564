-- $1 side, $2 message id, $3 consumer, $4 how many: the newest notes about a message.
SELECT note.run, note.act, note.letter_id, note.operator, note.reason, note.noted_at
FROM outbox_operator_note AS note
WHERE note.message_id = $2 AND note.side = $1 AND note.consumer = $3
ORDER BY note.id DESC
LIMIT $4
