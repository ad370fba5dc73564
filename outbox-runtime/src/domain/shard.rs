use super::envelope::MessageId;

/// How many shards the outbox has. Stored rows carry their shard, so the number is part of the format.
pub const SHARDS: u16 = 64;

/// One of the [`SHARDS`] parts of the outbox: the unit in which relays share out the work.
pub type Shard = i16;

/// The shard of an aggregate, or of a message without one.
///
/// The 64-bit [FNV-1a](https://datatracker.ietf.org/doc/html/draft-eastlake-fnv) of type, a zero
/// byte and id, folded to 32 bits, modulo [`SHARDS`]: stable across versions, platforms and programs.
pub fn shard_of(aggregate: Option<(&str, &str)>, message_id: MessageId) -> Shard {
    let part = match aggregate {
        Some((kind, id)) => part_of(kind.bytes().chain([0]).chain(id.bytes()), SHARDS),
        None => part_of(message_id.as_uuid().into_bytes(), SHARDS),
    };
    // It is below 64, so it always fits.
    Shard::try_from(part).unwrap_or_default()
}

/// The 64-bit FNV-1a, folded to 32 bits, modulo the number of parts; 0 if there is none.
pub(crate) fn part_of(bytes: impl IntoIterator<Item = u8>, parts: u16) -> u16 {
    let hash = fnv1a(bytes);
    let folded = (hash >> 32) ^ (hash & 0xffff_ffff);
    let part = folded.checked_rem(u64::from(parts));
    // The remainder is below a u16, so it always fits.
    u16::try_from(part.unwrap_or_default()).unwrap_or_default()
}

fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_matches_its_published_vectors() {
        assert_eq!(fnv1a(*b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(*b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(*b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn aggregates_spread_over_all_shards() {
        let id = MessageId::from_uuid(uuid::Uuid::nil());
        let mut rows = [0_u32; SHARDS as usize];
        for n in 0..6400 {
            let shard = shard_of(Some(("Order", &n.to_string())), id);
            rows[usize::try_from(shard).unwrap()] += 1;
        }
        assert!(rows.iter().all(|&n| (50..200).contains(&n)), "{rows:?}");
    }
}
