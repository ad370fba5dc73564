//! How far everything is, as the three databases say.

use std::fmt::Write;

use anyhow::Context;
use order_fulfilment::BoundedContext;
use order_fulfilment::books::new_table;
use serde::Serialize;
use sqlx::{FromRow, PgConnection};

/// Something that is connected to each service's database.
pub(crate) type Readers = [(BoundedContext, PgConnection)];

/// How far everything is.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Status {
    /// All that was raised is published, and handled by all that want it.
    pub(crate) drained: bool,
    pub(crate) orders: Orders,
    pub(crate) services: Vec<Service>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, FromRow)]
pub(crate) struct Orders {
    pub(crate) placed: i64,
    pub(crate) confirmed: i64,
    pub(crate) cancelled: i64,
}

/// What one service's database says.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) figures: Figures,
    /// The newest process of each name that works on this database.
    pub(crate) processes: Vec<Process>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, FromRow)]
pub(crate) struct Figures {
    pub(crate) events: i64,
    pub(crate) published: i64,
    /// How often these events have to be handled, here and elsewhere.
    pub(crate) to_handle: i64,
    /// How many events of all services were handled here.
    pub(crate) handled: i64,
    pub(crate) parked_in_outbox: i64,
    pub(crate) parked_in_inbox: i64,
    /// Duplicates that the inbox absorbed, as far as processes that were killed had written that down.
    pub(crate) duplicates: i64,
}

#[derive(Debug, PartialEq, Serialize, FromRow)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) broker: String,
    pub(crate) subscribed: bool,
    pub(crate) health: String,
    /// How many seconds ago it wrote this.
    pub(crate) seen_ago: f64,
    pub(crate) starts: i64,
}

impl Status {
    /// Reads it.
    ///
    /// The databases are read one after the other, so the figures are not of one moment. They are
    /// read twice: counts only grow, so if the second look finds what the first one found, nothing
    /// moved in between, and only then `drained` may be said.
    pub(crate) async fn read(readers: &mut Readers) -> anyhow::Result<Self> {
        let (_, first) = look(readers).await?;
        let (orders, services) = look(readers).await?;
        let same = first
            .iter()
            .map(|one| &one.figures)
            .eq(services.iter().map(|one| &one.figures));
        let sum =
            |of: fn(&Figures) -> i64| services.iter().map(|one| of(&one.figures)).sum::<i64>();
        let published = sum(|one| one.events) == sum(|one| one.published);
        let handled = sum(|one| one.to_handle) == sum(|one| one.handled);
        Ok(Self {
            drained: same && published && handled,
            orders,
            services,
        })
    }

    /// How many messages are parked anywhere.
    pub(crate) fn parked(&self) -> i64 {
        let parked = |one: &Service| one.figures.parked_in_outbox + one.figures.parked_in_inbox;
        self.services.iter().map(parked).sum()
    }

    /// A table for people, or the same as JSON for machines.
    pub(crate) fn print(&self, json: bool) -> anyhow::Result<String> {
        if json {
            return Ok(serde_json::to_string(self)?);
        }
        let Orders {
            placed,
            confirmed,
            cancelled,
        } = self.orders;
        let mut text =
            format!("{placed} orders placed, {confirmed} confirmed, {cancelled} cancelled\n");
        let mut table = new_table([
            "service",
            "events",
            "published",
            "handled here",
            "duplicates",
            "parked out",
            "parked in",
        ]);
        for service in &self.services {
            let of = &service.figures;
            let figures = [
                of.events,
                of.published,
                of.handled,
                of.duplicates,
                of.parked_in_outbox,
                of.parked_in_inbox,
            ];
            let figures = figures.iter().map(i64::to_string);
            table.add_row([service.name.to_owned()].into_iter().chain(figures));
        }
        writeln!(text, "{table}")?;
        for process in self.services.iter().flat_map(|one| &one.processes) {
            writeln!(
                text,
                "{} at {}, start {}: {} ({:.1} s ago)",
                process.name, process.broker, process.starts, process.health, process.seen_ago
            )?;
        }
        text.push_str(match self.drained {
            true => "Everything is published and handled.",
            false => "There is more to do.",
        });
        Ok(text)
    }
}

async fn look(readers: &mut Readers) -> anyhow::Result<(Orders, Vec<Service>)> {
    let mut orders = Orders::default();
    let mut services = Vec::new();
    for (context, connection) in readers {
        let unreadable = || format!("the status of {} can't be read", context.name());
        let figures = sqlx::query_as(include_str!("../sql/status.sql"))
            .fetch_one(&mut *connection)
            .await
            .with_context(unreadable)?;
        let processes = sqlx::query_as(include_str!("../sql/processes.sql"))
            .fetch_all(&mut *connection)
            .await
            .with_context(unreadable)?;
        if *context == BoundedContext::Ordering {
            orders = sqlx::query_as(include_str!("../sql/orders.sql"))
                .fetch_one(&mut *connection)
                .await
                .with_context(unreadable)?;
        }
        services.push(Service {
            name: context.name(),
            figures,
            processes,
        });
    }
    Ok((orders, services))
}
