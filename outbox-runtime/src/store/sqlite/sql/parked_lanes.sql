-- ?1 shards as bits.
SELECT DISTINCT parked.shard, parked.lane FROM outbox_parked AS parked WHERE (?1 >> parked.shard) & 1
