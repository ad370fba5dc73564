SELECT EXISTS (
    SELECT FROM outbox_shard AS free
    WHERE free.owner IS NULL OR free.lease_until < clock_timestamp()
)
