-- ?1 the letter's id: what a list of the inbox does not show.
SELECT
    CAST(parked.causation_id AS TEXT), CAST(parked.traceparent AS TEXT), CAST(parked.tracestate AS TEXT),
    CAST(parked.headers AS TEXT), NULL, parked.idempotency_key, CAST(parked.payload AS TEXT), NULL
FROM inbox_parked AS parked
WHERE parked.id = ?1
UNION ALL
SELECT
    CAST(gone.causation_id AS TEXT), CAST(gone.traceparent AS TEXT), CAST(gone.tracestate AS TEXT),
    CAST(gone.headers AS TEXT), gone.business_key, gone.idempotency_key, CAST(gone.payload AS TEXT), gone.causes
FROM outbox_discarded AS gone
WHERE gone.side = 'inbox' AND gone.letter_id = ?1
