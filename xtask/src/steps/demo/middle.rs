//! The broker's server, which is killed once and comes back beside everything else.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};
use outbox_servers::{Server, StartError};

/// The server; with another thread while it is down.
pub(super) enum Middle {
    Up(Box<Server>),
    Down(JoinHandle<(Box<Server>, Result<(), StartError>)>),
    /// It did not come back.
    Gone,
}

impl Middle {
    /// Kills it and starts it again after a while, which takes some time with RabbitMQ.
    pub(super) fn kill(&mut self, away: Duration) {
        *self = match std::mem::replace(self, Self::Gone) {
            Self::Up(mut server) => Self::Down(thread::spawn(move || {
                server.kill();
                thread::sleep(away);
                let back = server.run();
                (server, back)
            })),
            other => other,
        };
    }

    /// Takes it back once it serves again.
    pub(super) fn tend(&mut self) -> Result<()> {
        if !matches!(self, Self::Down(thread) if thread.is_finished()) {
            return Ok(());
        }
        let Self::Down(thread) = std::mem::replace(self, Self::Gone) else {
            return Ok(());
        };
        let (server, back) = thread
            .join()
            .map_err(|_| anyhow!("the broker's restart panicked"))?;
        back?;
        *self = Self::Up(server);
        Ok(())
    }

    /// Waits for the other thread, whose server would else be left behind by the end of this process.
    pub(super) fn end(&mut self) {
        if let Self::Down(thread) = std::mem::replace(self, Self::Gone) {
            let _dropped_here = thread.join();
        }
    }

    /// Whether it serves.
    pub(super) fn is_up(&self) -> bool {
        matches!(self, Self::Up(_))
    }
}
