//! What things are called at the server.

use std::fmt::Write;

use lapin::types::ShortString;
use sha2::{Digest, Sha256};

use super::failure::{Failure, short};

/// The longest part of a queue's name that is kept as it is. AMQP's names have at most 255 bytes.
const LONGEST_PART: usize = 80;
/// How much of a longer one stays readable.
const KEPT: usize = 40;

/// The queue of a group's partition, behind one of our exchanges.
pub(super) fn queue(exchange: &str, group: &str, partition: u16) -> Result<ShortString, Failure> {
    short(&format!("{exchange}.{}.{partition}", part(group, false)))
}

/// The queue of a group behind an exchange of others. Its colons keep it apart from all queues of
/// ours.
pub(super) fn foreign_queue(
    namespace: &str,
    exchange: &str,
    group: &str,
) -> Result<ShortString, Failure> {
    let (exchange, group) = (part(exchange, true), part(group, false));
    short(&format!("{namespace}:{exchange}:{group}"))
}

/// What a message is published under, and what the queues of its partition are bound with.
pub(super) fn routing_key(partition: u16, event_type: &str) -> Result<ShortString, Failure> {
    short(&format!("{partition}.{event_type}"))
}

/// Any text as a part of a name: no two have the same.
fn part(text: &str, keep_dots: bool) -> String {
    let mut part = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => part.push(byte.into()),
            b'.' if keep_dots => part.push('.'),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(part, "%{byte:02X}");
            }
        }
    }
    if part.len() > LONGEST_PART {
        part.truncate(KEPT);
        part.push('~');
        for byte in Sha256::digest(text).iter().take(16) {
            let _ = write!(part, "{byte:02x}");
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_group_has_a_queue_of_its_own() {
        let queue = |group: &str| queue("shop.events", group, 65_535).unwrap().to_string();
        assert_eq!(queue("inventory"), "shop.events.inventory.65535");
        assert_eq!(queue("a.b 3%"), "shop.events.a%2Eb%203%25.65535");
        let long = "ö".repeat(5_000);
        assert!(queue(&long).len() < 120);
        assert_ne!(queue(&long), queue(&format!("{long}x")));
    }

    #[test]
    fn the_longest_names_fit() {
        let name = "x".repeat(64);
        assert!(queue(&format!("{name}.{name}"), &"g".repeat(999), 65_535).is_ok());
        assert!(foreign_queue(&name, &"f".repeat(999), &"g".repeat(999)).is_ok());
        assert_eq!(
            foreign_queue("shop", "billing.invoices", "inventory")
                .unwrap()
                .as_str(),
            "shop:billing.invoices:inventory"
        );
    }

    #[test]
    fn a_routing_key_is_bounded() {
        assert_eq!(
            routing_key(7, "order.placed").unwrap().as_str(),
            "7.order.placed"
        );
        assert!(routing_key(65_535, &"x".repeat(249)).is_ok());
        let error = routing_key(65_535, &"ö".repeat(125)).unwrap_err();
        assert!(error.to_string().contains("255 bytes"), "{error}");
    }
}
