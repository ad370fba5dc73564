//! The orders of a run.

use std::fmt::Write;

/// A CSV file of so many orders, the seed's.
///
/// Articles and customers grow with the orders, so that some run out of stock or credit and most do
/// not, however many orders there are.
pub(super) fn csv(orders: u32, dice: &mut fastrand::Rng) -> String {
    let (articles, customers) = ((orders / 12).max(1), (orders / 6).max(1));
    let mut text = "order_id,customer_id,sku,quantity,unit_price_cents\n".to_owned();
    for order in 1..=orders {
        let customer = dice.u32(1..=customers);
        let article = dice.u32(1..=articles);
        let quantity = dice.u32(1..=9);
        let price = dice.u32(500..=25_000);
        // Writing to a text can't fail.
        let _ = writeln!(
            text,
            "order-{order:06},C-{customer:05},SKU-{article:05},{quantity},{price}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides() {
        let of = |seed| csv(20, &mut fastrand::Rng::with_seed(seed));
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        assert_eq!(of(7).lines().count(), 21);
    }
}
