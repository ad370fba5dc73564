use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::mpsc;

use super::delivery::Parcel;
use crate::broker::Subscription;
use crate::domain::Message;

/// A consumer group: what it asked for, and the members that are there to receive it.
pub(super) struct Group {
    name: String,
    event_types: BTreeSet<String>,
    members: Vec<Member>,
}

struct Member {
    event_types: BTreeSet<String>,
    queue: mpsc::Sender<Parcel>,
}

impl Group {
    pub(super) fn new(subscription: Subscription, queue: mpsc::Sender<Parcel>) -> Self {
        Self {
            name: subscription.group,
            event_types: subscription.event_types.clone(),
            members: vec![Member {
                event_types: subscription.event_types,
                queue,
            }],
        }
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// Adds a member. The first one after all have left says anew what the group wants.
    pub(super) fn join(&mut self, event_types: BTreeSet<String>, queue: mpsc::Sender<Parcel>) {
        self.drop_departed();
        if self.members.is_empty() {
            self.event_types.clone_from(&event_types);
        } else {
            self.event_types.extend(event_types.iter().cloned());
        }
        self.members.push(Member { event_types, queue });
    }

    /// The queue of the member that the message goes to; `None` when the group does not want it.
    ///
    /// # Errors
    /// The group's name when it wants the message and no member is there to take it.
    pub(super) fn route(
        &mut self,
        message: &Message,
    ) -> Result<Option<mpsc::Sender<Parcel>>, String> {
        let event_type = message.metadata.event_type.as_str();
        if !self.event_types.contains(event_type) {
            return Ok(None);
        }
        self.drop_departed();
        let takers = || {
            self.members
                .iter()
                .filter(|member| member.event_types.contains(event_type))
        };
        // One key goes to one member while the members stay the same, which keeps its lane short.
        let chosen = hash(&message.metadata.ordering_key()).checked_rem(takers().count() as u64);
        chosen
            .and_then(|n| takers().nth(n as usize))
            .map(|member| Some(member.queue.clone()))
            .ok_or_else(|| self.name.clone())
    }

    fn drop_departed(&mut self) {
        self.members.retain(|member| !member.queue.is_closed());
    }
}

fn hash(key: &(String, String)) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
