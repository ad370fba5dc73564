//! What goes over the wire: a JSON value a line, in both directions.

use outbox_runtime::{Message, Metadata};
use serde::{Deserialize, Serialize};

/// A message on its way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Letter {
    pub(super) metadata: Metadata,
    pub(super) payload: String,
}

/// From a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Take these, in order; all or none.
    Publish(Vec<Letter>),
    /// Deliver to this connection from now on.
    Subscribe,
    /// The delivery with that tag is done.
    Ack(u64),
    /// Deliver it again.
    Nack(u64),
}

/// To a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The messages of one publish are taken, or none is, and why.
    Published(Result<(), String>),
    /// Deliveries follow.
    Subscribed,
    /// A message, its tag on this connection, and how often it was delivered, from 1.
    Delivery(u64, u32, Box<Letter>),
}

impl From<&Message> for Letter {
    fn from(message: &Message) -> Self {
        Self {
            metadata: message.metadata.clone(),
            payload: message.payload.clone(),
        }
    }
}

impl From<Letter> for Message {
    fn from(letter: Letter) -> Self {
        Self {
            metadata: letter.metadata,
            payload: letter.payload,
        }
    }
}

/// A value as a line.
pub(super) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("a frame is JSON");
    line.push(b'\n');
    line
}
