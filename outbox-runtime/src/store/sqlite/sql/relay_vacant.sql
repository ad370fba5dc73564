SELECT EXISTS (
    SELECT 1 FROM outbox_shard AS free
    WHERE free.owner IS NULL OR free.lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER)
)
