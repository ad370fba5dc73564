use std::collections::{BTreeMap, BTreeSet};

use super::error::ConfigError;

/// The longest namespace or topic, in bytes.
const LONGEST: usize = 64;
const NAMESPACE: &str = "outbox";
const TOPIC: &str = "events";

/// Names what events travel through: streams, topics, exchanges.
///
/// All services that exchange events have one namespace, and each event type belongs to one topic
/// in it: `events`, unless [`topic`](Self::topic) says otherwise. Publishers and consumers derive
/// the broker's names from the two in the same way, and so have to be told the same:
///
/// | broker | name |
/// |---|---|
/// | Kafka | topic `outbox.events` |
/// | NATS | stream `outbox_events` with the subjects `outbox.events.>` |
/// | RabbitMQ | exchange `outbox.events`, queues `outbox.events.<group>.<partition>` |
/// | Redis | streams `{outbox.events.<partition>}` |
///
/// All events of one aggregate have to be in one topic, or a broker can't keep their order.
///
/// ```
/// use outbox_runtime::broker::Topics;
///
/// let topics = Topics::new("shop")?
///     .topic("InvoiceSent", "billing")?
///     .topic("InvoicePaid", "billing")?;
/// assert_eq!(topics.of("OrderPlaced"), "events");
/// assert_eq!(topics.of("InvoicePaid"), "billing");
/// # Ok::<(), outbox_runtime::broker::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    namespace: String,
    of_types: BTreeMap<String, String>,
}

impl Topics {
    /// One topic, `events`, in this namespace (`outbox` unless told).
    ///
    /// # Errors
    /// [`ConfigError`] unless it has 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub fn new(namespace: impl Into<String>) -> Result<Self, ConfigError> {
        Ok(Self {
            namespace: checked("namespace", namespace.into())?,
            of_types: BTreeMap::new(),
        })
    }

    /// Puts an event type into another topic of the namespace.
    ///
    /// # Errors
    /// [`ConfigError`] unless the topic has 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub fn topic(
        mut self,
        event_type: impl Into<String>,
        topic: impl Into<String>,
    ) -> Result<Self, ConfigError> {
        let topic = checked("topic", topic.into())?;
        self.of_types.insert(event_type.into(), topic);
        Ok(self)
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The topic of an event type.
    pub fn of(&self, event_type: &str) -> &str {
        self.of_types.get(event_type).map_or(TOPIC, String::as_str)
    }

    /// The topics of several event types.
    pub fn of_all<'a>(&'a self, event_types: &BTreeSet<String>) -> BTreeSet<&'a str> {
        event_types.iter().map(|name| self.of(name)).collect()
    }

    /// The topic's full name, with this between namespace and topic.
    pub(super) fn full_name(&self, topic: &str, between: char) -> String {
        format!("{}{between}{topic}", self.namespace)
    }
}

impl Default for Topics {
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            of_types: BTreeMap::new(),
        }
    }
}

fn checked(what: &'static str, name: String) -> Result<String, ConfigError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=LONGEST).contains(&name.len()) && name.chars().all(fits) {
        Ok(name)
    } else {
        Err(ConfigError::new(format!(
            "the {what} {name:?} can't be part of every broker's names; use 1 to {LONGEST} of \
             A-Z a-z 0-9 _ -"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_broker_could_not_take_are_refused() {
        for name in ["", "a.b", "a b", "é", "*", &"x".repeat(65)] {
            let error = Topics::new(name).unwrap_err().to_string();
            assert!(error.contains("A-Z a-z 0-9 _ -"), "{error}");
            assert!(Topics::default().topic("E", name).is_err());
        }
        assert!(Topics::new("x".repeat(64)).is_ok());
    }

    #[test]
    fn several_types_have_each_topic_once() {
        let topics = Topics::new("s").unwrap().topic("C", "other").unwrap();
        let types = ["A", "B", "C"].map(str::to_owned).into();
        assert_eq!(topics.of_all(&types), BTreeSet::from(["events", "other"]));
        assert_eq!(topics.full_name("events", '_'), "s_events");
    }
}
