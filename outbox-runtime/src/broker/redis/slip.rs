use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::Link;
use super::entry::Id;
use super::failure::Failure;
use crate::broker::{Acknowledge, BrokerError};

/// A consumer group as one subscription sees it.
pub(super) struct Group {
    pub(super) name: String,
    /// For reading and acknowledging.
    pub(super) link: Link,
    /// How long an answer may take.
    pub(super) within: Duration,
    /// Ends the subscription, so that a new one begins with what is not acknowledged.
    pub(super) lost: CancellationToken,
}

impl Group {
    /// Tells the server that the entries are done with. Those that are gone are, too.
    pub(super) async fn acknowledge(&self, stream: &str, ids: &[Id]) -> Result<(), Failure> {
        let mut command = ::redis::cmd("XACK");
        command.arg(stream).arg(&self.name);
        for id in ids {
            command.arg(id.to_string());
        }
        self.link.run(&command, self.within).await.map(drop)
    }
}

/// The answer to one delivery.
///
/// Whatever is not acknowledged ends the subscription: nothing behind it may be handled before it
/// has come again.
pub(super) struct Slip {
    group: Arc<Group>,
    stream: Arc<str>,
    id: Id,
    lost: DropGuard,
    _room: OwnedSemaphorePermit,
}

impl Slip {
    pub(super) fn new(
        group: &Arc<Group>,
        stream: &Arc<str>,
        id: Id,
        room: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            group: Arc::clone(group),
            stream: Arc::clone(stream),
            id,
            lost: group.lost.clone().drop_guard(),
            _room: room,
        }
    }
}

#[async_trait]
impl Acknowledge for Slip {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        self.group
            .acknowledge(&self.stream, &[self.id])
            .await
            .map_err(|failure| BrokerError::new("acknowledging a message", failure))?;
        self.lost.disarm();
        Ok(())
    }

    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        // Dropping it does it.
        Ok(())
    }
}
