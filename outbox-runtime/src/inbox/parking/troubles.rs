use std::collections::BTreeSet;

use crate::health::HealthHandle;
use crate::store::Trouble;

/// The part of the health that is about reading the parked messages.
const READING: &str = "parked messages";

/// Tells the health what an operator should know of the parked messages, and takes it back when
/// the consumer ends.
pub(super) struct Troubles {
    health: HealthHandle,
    told: BTreeSet<String>,
}

impl Troubles {
    pub(super) const fn new(health: HealthHandle) -> Self {
        Self {
            health,
            told: BTreeSet::new(),
        }
    }

    /// Tells of those, and withdraws what is over.
    pub(super) fn tell(&mut self, troubles: &[Trouble]) {
        self.health.recover(READING);
        let now: BTreeSet<String> = troubles.iter().map(part).collect();
        for over in self.told.difference(&now) {
            self.health.recover(over);
        }
        for trouble in troubles {
            self.health.degrade(&part(trouble), describe(trouble));
        }
        self.told = now;
    }

    /// Tells that the parked messages can't be tried.
    pub(super) fn tell_unreadable(&self, reason: &str) {
        self.health.degrade(
            READING,
            format!("parked messages can't be tried again: {reason}"),
        );
    }
}

impl Drop for Troubles {
    fn drop(&mut self) {
        self.tell(&[]);
    }
}

fn part(trouble: &Trouble) -> String {
    format!("{READING} of {}", trouble.consumer)
}

fn describe(trouble: &Trouble) -> String {
    let Trouble {
        consumer,
        dead,
        failing,
        parked,
        is_orphaned,
        stuck,
        message_id,
        event_type,
        schema_version,
        cause,
    } = trouble;
    let whose = if consumer.is_empty() {
        "events that no handler takes".to_owned()
    } else {
        format!("consumer {consumer}")
    };
    let what = if *is_orphaned {
        format!(
            ", of which this program has no handler: {dead} dead letter(s) wait for an operator, \
             {stuck} message(s) are due and nobody tries them"
        )
    } else {
        format!(
            ": {dead} dead letter(s) wait for an operator, {failing} message(s) fail again and \
             again"
        )
    };
    format!(
        "{whose}{what}, {parked} parked in all; the oldest is message {message_id} \
         ({event_type} v{schema_version}): {}",
        cause.as_deref().unwrap_or("not tried yet")
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::MessageId;

    fn trouble(consumer: &str) -> Trouble {
        Trouble {
            consumer: consumer.to_owned(),
            dead: 1,
            failing: 2,
            parked: 7,
            is_orphaned: false,
            stuck: 0,
            message_id: MessageId::from_uuid(Uuid::from_u128(7)),
            event_type: "OrderPaid".to_owned(),
            schema_version: 2,
            cause: Some("no stock".to_owned()),
        }
    }

    #[test]
    fn what_is_over_is_withdrawn_and_so_is_all_at_the_end() {
        let health = HealthHandle::new();
        let mut troubles = Troubles::new(health.clone());
        troubles.tell(&[trouble("a"), trouble("")]);
        assert_eq!(
            health.get().to_string(),
            "degraded: events that no handler takes: 1 dead letter(s) wait for an operator, 2 \
             message(s) fail again and again, 7 parked in all; the oldest is message \
             00000000-0000-0000-0000-000000000007 (OrderPaid v2): no stock; consumer a: 1 dead \
             letter(s) wait for an operator, 2 message(s) fail again and again, 7 parked in all; \
             the oldest is message 00000000-0000-0000-0000-000000000007 (OrderPaid v2): no stock"
        );
        troubles.tell(&[trouble("a")]);
        assert!(!health.get().to_string().contains("no handler"));
        troubles.tell_unreadable("no database");
        drop(troubles);
        assert!(health.get().is_healthy());
    }
}
