use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tracing::warn;

use super::connection::{Link, Server, script_call};
use super::entry::{Entry, Id, array, pair, text};
use super::failure::Failure;
use super::slip::{Group, Slip};
use super::topology::READ;
use crate::broker::cloud_events::Decoder;
use crate::broker::{BrokerError, Delivery};

/// How many entries are asked for at once.
pub(super) const READ_AT_ONCE: usize = 64;

/// How long the server keeps a question for news. Then the reader looks by itself, and so notices
/// also what makes no news: that its group is gone or another reader took over.
const WAIT_FOR_NEWS: Duration = Duration::from_secs(5);

/// A stream that is read.
pub(super) struct Source {
    pub(super) stream: Arc<str>,
    pub(super) is_foreign: bool,
    pub(super) progress: Progress,
    /// After which entry there would be news.
    pub(super) seen: Id,
    /// Whether reading may find something.
    pub(super) has_news: bool,
}

/// What comes next in a stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Progress {
    /// What was read before and is not acknowledged, after this id.
    Again(Id),
    /// What nobody of the group has read.
    New,
}

/// Reads streams in the background, as far ahead as there is room.
#[derive(Clone)]
pub(super) struct Reader {
    /// By which the server knows the group's only reader.
    pub(super) name: String,
    pub(super) group: Arc<Group>,
    pub(super) server: Arc<Server>,
    /// For messages that are read and not answered.
    pub(super) room: Arc<Semaphore>,
    pub(super) decoder: Decoder,
    pub(super) deliver: mpsc::Sender<Result<Delivery, BrokerError>>,
}

impl Reader {
    /// Reads until something fails, and tells of that.
    pub(super) async fn run(self, sources: Vec<Source>) {
        let Err(failure) = self.read_on(sources).await;
        if let Some(failure) = failure {
            let _ = self
                .deliver
                .send(Err(BrokerError::new("receiving", failure)))
                .await;
        }
    }

    /// # Errors
    /// Why it ended; `None` if nobody receives any more.
    async fn read_on(&self, mut sources: Vec<Source>) -> Result<Infallible, Option<Failure>> {
        if sources.is_empty() {
            // No topic is in this partition.
            std::future::pending::<()>().await;
        }
        let mut waiting: Option<Link> = None;
        loop {
            for source in &mut sources {
                if source.has_news {
                    self.read(source).await?;
                }
            }
            if sources.iter().any(|source| source.has_news) {
                continue;
            }
            let link = match &waiting {
                Some(link) => link,
                None => waiting.insert(self.connect().await?),
            };
            self.wait_for_news(link, &mut sources).await?;
        }
    }

    /// Reads once and hands over what came.
    async fn read(&self, source: &mut Source) -> Result<(), Option<Failure>> {
        let mut room = self.room().await?;
        let entries = self.ask(source, room.len()).await;
        let entries = entries.map_err(|failure| failure.at(&source.stream))?;
        match (source.progress, entries.last()) {
            (Progress::Again(_), Some((last, _))) => source.progress = Progress::Again(last.id),
            (Progress::Again(_), None) => source.progress = Progress::New,
            (Progress::New, Some((last, _))) => source.seen = source.seen.max(last.id),
            (Progress::New, None) => source.has_news = false,
        }
        let mut done = Vec::new();
        let mut deliveries = Vec::new();
        for (entry, attempt) in entries {
            let id = entry.id;
            let Some(raw) = entry.into_raw(&source.stream) else {
                tell_lost(&source.stream, &self.group.name, &id.to_string());
                done.push(id);
                continue;
            };
            let foreign = source.is_foreign.then_some(&*source.stream);
            match (self.decoder.decode(&raw, foreign), room.pop()) {
                (Some(decoded), Some(place)) => {
                    let slip = Slip::new(&self.group, &source.stream, id, place);
                    deliveries.push(decoded.deliver(attempt, slip));
                }
                (None, _) => done.push(id),
                // The server never gives more than it was asked for.
                (Some(_), None) => return Err(Some(Failure::unexpected())),
            }
        }
        if !done.is_empty() {
            self.group.acknowledge(&source.stream, &done).await?;
        }
        for delivery in deliveries {
            self.deliver.send(Ok(delivery)).await.map_err(|_| None)?;
        }
        Ok(())
    }

    /// Room for at least one message, and for as many as are read at once if there is.
    async fn room(&self) -> Result<Vec<OwnedSemaphorePermit>, Option<Failure>> {
        // The semaphore is never closed.
        let first = Arc::clone(&self.room).acquire_owned().await;
        let mut room = vec![first.map_err(|_| None)?];
        while room.len() < READ_AT_ONCE
            && let Ok(place) = Arc::clone(&self.room).try_acquire_owned()
        {
            room.push(place);
        }
        Ok(room)
    }

    /// The next entries, and how often each was handed over with this time.
    async fn ask(&self, source: &Source, count: usize) -> Result<Vec<(Entry, u32)>, Failure> {
        let mut call = script_call(&READ, &source.stream);
        call.arg(&self.group.name).arg(&self.name).arg(count);
        match source.progress {
            Progress::Again(id) => call.arg(id.to_string()),
            Progress::New => call.arg(">"),
        };
        let group = &self.group;
        let answer = group.link.run_script(&READ, &call, group.within).await?;
        let [entries, pending] = pair(answer)?;
        let mut attempts = HashMap::new();
        for line in array(pending)? {
            let (id, attempt) = handed_over(line)?;
            attempts.insert(id, attempt);
        }
        let with_attempt = |entry: Value| {
            let entry = Entry::of(entry)?;
            let attempt = attempts.get(&entry.id).copied().unwrap_or(1);
            Ok((entry, attempt))
        };
        array(entries)?.into_iter().map(with_attempt).collect()
    }

    async fn connect(&self) -> Result<Link, Failure> {
        let within = self.group.within;
        let connecting = tokio::time::timeout(within, self.server.connect());
        connecting.await.map_err(|_| Failure::late(within))?
    }

    /// Waits until a stream has an entry that was not there when it was read, or for a while.
    async fn wait_for_news(&self, link: &Link, sources: &mut [Source]) -> Result<(), Failure> {
        let mut wait = ::redis::cmd("XREAD");
        let milliseconds = u64::try_from(WAIT_FOR_NEWS.as_millis()).unwrap_or(u64::MAX);
        wait.arg("COUNT").arg(1).arg("BLOCK").arg(milliseconds);
        wait.arg("STREAMS");
        for source in &*sources {
            wait.arg(&*source.stream);
        }
        for source in &*sources {
            wait.arg(source.seen.to_string());
        }
        let streams = match link.run(&wait, WAIT_FOR_NEWS + self.group.within).await? {
            Value::Nil => {
                sources.iter_mut().for_each(|source| source.has_news = true);
                return Ok(());
            }
            Value::Map(streams) => streams,
            streams => array(streams)?
                .into_iter()
                .map(|stream| pair(stream).map(|[name, entries]| (name, entries)))
                .collect::<Result<_, _>>()?,
        };
        for (name, entries) in streams {
            let name = text(name)?;
            let mut named = sources.iter_mut();
            if let Some(source) = named.find(|source| *source.stream == name)
                && let Some(entry) = array(entries)?.pop()
            {
                // Should the group stand elsewhere (somebody moved it), this is not seen as news
                // again and again.
                source.seen = source.seen.max(Entry::of(entry)?.id);
                source.has_news = true;
            }
        }
        Ok(())
    }
}

/// Says that an entry was trimmed away before it was handled.
pub(super) fn tell_lost(stream: &str, group: &str, id: &str) {
    warn!(
        stream,
        group,
        id,
        "an entry was removed from its stream before it was acknowledged; it is lost to the group"
    );
}

/// An entry's id and how often it was handed over, from a line of XPENDING.
fn handed_over(line: Value) -> Result<(Id, u32), Failure> {
    let mut parts = array(line)?.into_iter();
    let id = text(parts.next().unwrap_or_default())?;
    // Between them are the reader's name and the time since.
    let Some(Value::Int(times)) = parts.nth(2) else {
        return Err(Failure::unexpected());
    };
    Ok((id.parse()?, u32::try_from(times).unwrap_or(u32::MAX).max(1)))
}
