use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::event::{AnyEvent, DomainEvent};

/// A cluster of objects that changes as one and is stored as one.
///
/// `#[aggregate]` implements it. The [`AggregateRoot`] inside carries the version for optimistic
/// locking and the events that were raised and not yet committed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an aggregate",
    label = "not an aggregate",
    note = "annotate the type with `#[aggregate(...)]`"
)]
pub trait Aggregate: Sized + Send + Sync + 'static {
    /// The aggregate's identity. Its `Display` is the aggregate id in envelopes and the broker's
    /// ordering key, so it must be stable and unique within the aggregate's type.
    type Id: fmt::Display + Clone + Send + Sync + 'static;

    /// The aggregate's type in envelopes, such as `"Order"`.
    const TYPE: &'static str;

    /// The identity.
    fn id(&self) -> &Self::Id;

    /// Version and raised events.
    fn root(&self) -> &AggregateRoot;

    /// Version and raised events, to change.
    fn root_mut(&mut self) -> &mut AggregateRoot;
}

/// States that an aggregate may raise the event `E`.
///
/// `#[aggregate(events(...))]` implements it for each event that it lists.
#[diagnostic::on_unimplemented(
    message = "the aggregate `{Self}` does not declare the event `{E}`",
    label = "`{E}` is not among the events that `{Self}` declares",
    note = "add it to the aggregate: `#[aggregate(events({E}))]`"
)]
pub trait Raises<E: DomainEvent>: Aggregate {}

/// An aggregate's version and the events that it raised and that are not yet committed.
///
/// Put it in one field of the aggregate. A new aggregate starts with [`AggregateRoot::new`].
///
/// ```
/// use outbox_runtime::AggregateRoot;
///
/// let root = AggregateRoot::new();
/// assert_eq!(root.version(), 0);
/// assert_eq!(root.pending().count(), 0);
/// ```
#[derive(Default)]
pub struct AggregateRoot {
    version: i64,
    pending: Vec<Box<dyn AnyEvent>>,
    unsaved: Arc<AtomicUsize>,
}

/// How many events an aggregate holds that were raised and never saved.
///
/// A unit of work keeps one for each aggregate that it handed out, so that a commit can refuse to
/// lose an event that was raised after the last save, even when the aggregate itself is gone.
#[derive(Debug, Clone)]
pub struct UnsavedEvents(Arc<AtomicUsize>);

impl UnsavedEvents {
    /// The number of events.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a save takes out of an [`AggregateRoot`].
#[non_exhaustive]
pub struct Staged {
    /// The version that the stored row must have; 0 for a row that does not exist yet.
    pub expected_version: i64,
    /// The version after the change.
    pub new_version: i64,
    /// The events with their sequence, in the order in which they were raised.
    pub events: Vec<(i64, Box<dyn AnyEvent>)>,
}

impl AggregateRoot {
    /// The root of an aggregate that was never stored.
    pub fn new() -> Self {
        Self::default()
    }

    /// The root of a stored aggregate at `version`.
    pub fn at_version(version: i64) -> Self {
        Self {
            version,
            ..Self::default()
        }
    }

    /// The version as last loaded or saved; 0 if it was never stored.
    ///
    /// It grows by the number of events of each change, and by one for a change without events,
    /// so that it equals the sequence of the aggregate's last event.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Remembers an event until the aggregate is saved and committed.
    pub fn record<E: DomainEvent>(&mut self, event: E) {
        self.pending.push(Box::new(event));
        self.unsaved.store(self.pending.len(), Ordering::Relaxed);
    }

    /// Watches for events that are never saved.
    pub fn unsaved(&self) -> UnsavedEvents {
        UnsavedEvents(Arc::clone(&self.unsaved))
    }

    /// Drops the events that wait, for a decision that the domain took back.
    pub fn discard_pending(&mut self) {
        self.pending.clear();
        self.unsaved.store(0, Ordering::Relaxed);
    }

    /// The events that wait for their commit, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &dyn AnyEvent> {
        self.pending.iter().map(AsRef::as_ref)
    }

    /// The waiting events of one type, oldest first: what a test of the domain asserts on.
    pub fn pending_of<E: DomainEvent>(&self) -> impl Iterator<Item = &E> {
        self.pending()
            .filter_map(|event| event.as_any().downcast_ref())
    }

    /// Takes the change out: the events get their sequences and the version moves on.
    pub fn stage(&mut self) -> Staged {
        let expected_version = self.version;
        self.unsaved.store(0, Ordering::Relaxed);
        let events: Vec<_> = std::mem::take(&mut self.pending)
            .into_iter()
            .zip(expected_version + 1..)
            .map(|(event, sequence)| (sequence, event))
            .collect();
        let steps = i64::try_from(events.len()).unwrap_or(i64::MAX).max(1);
        self.version = expected_version.saturating_add(steps);
        Staged {
            expected_version,
            new_version: self.version,
            events,
        }
    }
}

impl fmt::Debug for AggregateRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending: Vec<_> = self.pending().map(AnyEvent::event_type).collect();
        f.debug_struct("AggregateRoot")
            .field("version", &self.version)
            .field("pending", &pending)
            .finish()
    }
}
