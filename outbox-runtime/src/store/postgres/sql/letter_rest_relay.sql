-- $1 the letter's id: what a list of the relay does not show.
SELECT
    parked.causation_id, parked.traceparent, parked.tracestate,
    parked.headers::text, parked.business_key, NULL::text, parked.payload::text, NULL::text
FROM outbox_parked AS parked
WHERE parked.id = $1
UNION ALL
SELECT
    gone.causation_id, gone.traceparent, gone.tracestate,
    gone.headers::text, gone.business_key, gone.idempotency_key, gone.payload::text, gone.causes::text
FROM outbox_discarded AS gone
WHERE gone.side = 'relay' AND gone.letter_id = $1
