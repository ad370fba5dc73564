//! Which broker, and what has to be said to one of them alone.

use std::sync::Arc;

use anyhow::{Context, bail};
use clap::ValueEnum;
use outbox_runtime::broker::{Broker, BrokerOptions, Topics};

/// In which the broker's streams, topics, exchanges and queues are named.
const NAMESPACE: &str = "fulfilment";

#[derive(Debug, clap::Args)]
pub(crate) struct BrokerArgs {
    /// The broker, at its usual port here
    #[arg(
        long,
        global = true,
        value_enum,
        env = "FULFILMENT_BROKER",
        default_value = "nats"
    )]
    broker: BrokerName,

    /// The broker at this address; its scheme says which one (nats, tls, kafka, kafkas, amqp, amqps,
    /// redis or rediss), and --broker is of no account
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "FULFILMENT_BROKER_URL",
        hide_env_values = true
    )]
    broker_url: Option<String>,
}

/// A broker, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BrokerName {
    Nats,
    Kafka,
    Rabbitmq,
    Redis,
}

impl BrokerName {
    const fn usual_url(self) -> &'static str {
        match self {
            Self::Nats => "nats://127.0.0.1:4222",
            Self::Kafka => "kafka://127.0.0.1:9092",
            Self::Rabbitmq => "amqp://127.0.0.1:5672",
            Self::Redis => "redis://127.0.0.1:6379",
        }
    }
}

/// A broker that was opened. Nothing is connected yet.
pub(crate) struct Opened {
    pub(crate) broker: Arc<dyn Broker>,
    /// For people, and to tell one broker's processes from another's: the URL without its secrets.
    pub(crate) place: String,
}

impl BrokerArgs {
    /// Opens it for a process that is one of several, or the only one of its kind.
    pub(crate) fn open(&self, instance: Option<&str>) -> anyhow::Result<Opened> {
        let url = match &self.broker_url {
            Some(url) => url.as_str(),
            None => self.broker.usual_url(),
        };
        let Some((scheme, _)) = url.split_once("://") else {
            bail!(
                "the broker's URL can't be understood; its form is nats://HOST:PORT, or kafka://, amqp:// or redis://"
            );
        };
        let options = BrokerOptions::new().topics(Topics::new(NAMESPACE)?);
        let broker = open(scheme, url, options, instance).context("the broker can't be used")?;
        Ok(Opened {
            broker,
            place: place(scheme, url),
        })
    }
}

/// Services and relay differ in nothing but this, whichever broker it is.
fn open(
    scheme: &str,
    url: &str,
    options: BrokerOptions,
    instance: Option<&str>,
) -> anyhow::Result<Arc<dyn Broker>> {
    // ANCHOR: open
    match scheme {
        // RabbitMQ drops what no queue is bound for, so it is asked to refuse that, and told which
        // events are meant to have no reader.
        #[cfg(feature = "rabbitmq")]
        "amqp" | "amqps" => {
            use order_fulfilment::BoundedContext;
            use outbox_runtime::broker::RabbitMqBroker;
            let broker = RabbitMqBroker::new(url, options)?;
            Ok(Arc::new(
                broker.nobody_reads(BoundedContext::NOBODY_HANDLES),
            ))
        }
        // Kafka shares partitions out itself. To a member that it knows by name it gives those of
        // before at once, instead of waiting until the killed one's session is over.
        #[cfg(feature = "kafka")]
        "kafka" | "kafkas" => {
            use outbox_runtime::broker::KafkaBroker;
            let broker = KafkaBroker::new(url, options)?;
            Ok(Arc::new(match instance {
                Some(instance) => broker.set("group.instance.id", instance)?,
                None => broker,
            }))
        }
        _ => {
            let _is_for_kafka = instance;
            Ok(outbox_runtime::broker::open(url, options)?)
        }
    }
    // ANCHOR_END: open
}

/// The URL without user, password and parameters, any of which may be secret.
fn place(scheme: &str, url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_holds_no_secret() {
        for (url, shown) in [
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            (
                "amqp://user:secret@host:5672/shop?x=secret",
                "amqp://host:5672",
            ),
            ("nats://a:secret@one,nats://b:secret@two", "nats://two"),
            ("kafka://host?sasl.password=secret", "kafka://host"),
        ] {
            let (scheme, _) = url.split_once("://").unwrap_or_default();
            assert_eq!(place(scheme, url), shown);
        }
    }
}
