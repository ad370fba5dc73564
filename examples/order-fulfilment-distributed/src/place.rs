//! Places orders, as a shop's front end would.

use std::slice;
use std::time::Duration;

use order_fulfilment::BoundedContext;
use order_fulfilment::intake;
use order_fulfilment::placing::Placing;
use tokio::time::{MissedTickBehavior, interval};

use crate::args::PlaceOptions;
use crate::database::Server;

const CONNECTIONS: u32 = 2;

/// Places what is not there yet; `Ok(false)` if a line was refused.
///
/// It needs no broker, and none of the services: an order is a row and its event is another.
pub(crate) async fn run(server: &Server, options: &PlaceOptions) -> anyhow::Result<bool> {
    let intake = match &options.orders {
        Some(path) => intake::read(path)?,
        None => intake::parse("the included sample", intake::SAMPLE.as_bytes())?,
    };
    let outbox = server.open(BoundedContext::Ordering, CONNECTIONS).await?;
    let placing = Placing::default();
    let mut refused = intake.refused;
    match options.per_second {
        None => refused.extend(placing.place_all(&outbox, &intake.orders).await?),
        Some(rate) => {
            let mut ticks = interval(Duration::from_secs_f64(1.0 / rate));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for line in &intake.orders {
                let before = placing.already_placed();
                refused.extend(placing.place_all(&outbox, slice::from_ref(line)).await?);
                // What an earlier run placed needs no second wait.
                if placing.already_placed() == before {
                    ticks.tick().await;
                }
            }
        }
    }
    for refusal in &refused {
        eprintln!("refused: {refusal}");
    }
    println!(
        "{} orders placed, {} were there already, {} lines refused",
        placing.placed(),
        placing.already_placed(),
        refused.len()
    );
    Ok(refused.is_empty())
}
