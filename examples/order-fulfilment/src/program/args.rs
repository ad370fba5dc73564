use std::path::PathBuf;

use clap::Parser;
use order_fulfilment::Limits;

/// Fulfils the orders of a CSV file by events between three bounded contexts, and checks the books.
///
/// Exit code: 0 when everything balances, 1 when something does not, 2 when the program could not
/// do its work (a bad file, an unreachable database).
#[derive(Debug, Parser)]
#[command(name = "order-fulfilment", version)]
pub(crate) struct Args {
    /// The orders: a CSV file, or `-` for standard input [default: the included sample of 500 orders]
    ///
    /// Its header names the columns order_id, customer_id, sku, quantity and unit_price_cents, in
    /// any order. Each line is one order.
    #[arg(long, value_name = "FILE|-")]
    pub(crate) orders: Option<PathBuf>,

    /// Where all is stored: an SQLite file (made if missing) or a postgres:// URL
    #[arg(long, value_name = "FILE|URL", default_value = "order-fulfilment.db")]
    pub(crate) database: String,

    /// Share of the messages that are delivered twice on purpose, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.2, value_parser = share, allow_negative_numbers = true)]
    pub(crate) duplicates: f64,

    /// How often the relay is killed and started again while the orders run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) relay_restarts: u32,

    /// Pieces on a shelf when its SKU is ordered for the first time
    #[arg(long, value_name = "PIECES", default_value_t = Limits::default().opening_stock, value_parser = clap::value_parser!(i64).range(0..=1_000_000_000))]
    pub(crate) opening_stock: i64,

    /// Credit of a customer who orders for the first time
    #[arg(long, value_name = "CENTS", default_value_t = Limits::default().credit_cents, value_parser = clap::value_parser!(i64).range(0..=1_000_000_000_000))]
    pub(crate) credit_cents: i64,

    /// Seed of the choice which messages are delivered twice
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Print the reconciliation as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Give up when nothing moves for this long
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) patience: u64,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a number from 0 to 1 is needed, such as 0.2".to_owned()),
    }
}
