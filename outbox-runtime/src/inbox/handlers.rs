use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::Metadata;
use crate::handler::{HandlerEntry, HandlerRegistration, States};
use crate::problem::Problem;
use crate::store::Backend;

/// Says of a consumer's name whether its handlers are wanted.
#[derive(Clone)]
pub(crate) struct Selection(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Selection {
    pub(crate) fn all() -> Self {
        Self::of(|_| true)
    }

    pub(crate) fn of(wanted: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(wanted))
    }
}

/// The handlers of a program that work on one database, by the event that they take.
pub(crate) struct Handlers<DB: Backend> {
    by_event: BTreeMap<&'static str, Vec<Handler<DB>>>,
}

/// One of them.
pub(super) struct Handler<DB: Backend> {
    pub(super) registration: &'static HandlerRegistration,
    pub(super) entry: &'static HandlerEntry<DB>,
}

/// Who takes a message.
pub(super) struct Takers<DB: Backend> {
    /// The handlers that read its version.
    pub(super) handlers: Vec<Handler<DB>>,
    /// The consumers that take its event, but not in this version.
    pub(super) unable: Vec<&'static str>,
}

impl<DB: Backend> Handlers<DB> {
    /// Finds the handlers that are linked into the program.
    ///
    /// # Errors
    /// All that is wrong with them, at once.
    pub(crate) fn collect(selection: &Selection, states: &States) -> Result<Self, Vec<Problem>> {
        let mut wanted: Vec<_> = HandlerRegistration::all()
            .filter(|registration| (selection.0)(registration.consumer))
            .collect();
        // The linker's order is no order to report or to handle in.
        wanted.sort_by_key(|registration| (registration.file, registration.line));
        Self::check(&wanted, states)
    }

    fn check(
        wanted: &[&'static HandlerRegistration],
        states: &States,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut by_event: BTreeMap<_, Vec<Handler<DB>>> = BTreeMap::new();
        for (n, &registration) in wanted.iter().enumerate() {
            problems.extend(missing_states(registration, states));
            problems.extend(
                wanted
                    .iter()
                    .take(n)
                    .filter(|other| overlap(registration, other))
                    .map(|other| twice(registration, other)),
            );
            match registration.entry::<DB>() {
                Some(entry) => by_event
                    .entry(registration.event_type)
                    .or_default()
                    .push(Handler {
                        registration,
                        entry,
                    }),
                None => problems.push(wrong_database::<DB>(registration)),
            }
        }
        if problems.is_empty() {
            Ok(Self { by_event })
        } else {
            Err(problems)
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_event.is_empty()
    }

    pub(super) fn event_types(&self) -> impl Iterator<Item = &'static str> {
        self.by_event.keys().copied()
    }

    /// The names of the consumers, and the empty one of events that no handler takes.
    pub(crate) fn consumers_and_nobody(&self) -> Vec<&'static str> {
        let handlers = self.by_event.values().flatten();
        let mut consumers: BTreeSet<_> = handlers
            .map(|handler| handler.registration.consumer)
            .collect();
        consumers.insert("");
        consumers.into_iter().collect()
    }

    /// The consumer's handler for the message.
    pub(super) fn of(&self, consumer: &str, metadata: &Metadata) -> Option<Handler<DB>> {
        let all = self.by_event.get(metadata.event_type.as_str())?;
        all.iter()
            .find(|handler| {
                handler.registration.consumer == consumer
                    && handler.registration.takes(metadata.schema_version)
            })
            .copied()
    }

    /// Who takes the message; `None` when nobody takes its event.
    pub(super) fn takers(&self, metadata: &Metadata) -> Option<Takers<DB>> {
        let all = self.by_event.get(metadata.event_type.as_str())?;
        let handlers: Vec<_> = all
            .iter()
            .filter(|handler| handler.registration.takes(metadata.schema_version))
            .copied()
            .collect();
        if handlers.len() == all.len() {
            let unable = Vec::new();
            return Some(Takers { handlers, unable });
        }
        let consumers = |handlers: &[Handler<DB>]| -> BTreeSet<&'static str> {
            handlers
                .iter()
                .map(|handler| handler.registration.consumer)
                .collect()
        };
        let unable = consumers(all)
            .difference(&consumers(&handlers))
            .copied()
            .collect();
        Some(Takers { handlers, unable })
    }
}

/// The consumers of all handlers that are linked into the program, and the empty one.
pub(super) fn linked_consumers() -> Vec<&'static str> {
    let mut consumers: BTreeSet<_> = HandlerRegistration::all()
        .map(|registration| registration.consumer)
        .collect();
    consumers.insert("");
    consumers.into_iter().collect()
}

impl<DB: Backend> Clone for Handler<DB> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<DB: Backend> Copy for Handler<DB> {}

fn overlap(a: &HandlerRegistration, b: &HandlerRegistration) -> bool {
    a.consumer == b.consumer
        && a.event_type == b.event_type
        && a.versions.0 <= b.versions.1
        && b.versions.0 <= a.versions.1
}

fn twice(registration: &HandlerRegistration, other: &HandlerRegistration) -> Problem {
    at(
        registration,
        format!(
            "the consumer `{}` takes {} twice: `{}` takes v{}..={} and `{}` ({}:{}) takes v{}..={}; \
             give one of them another `consumer`, or `versions` that do not overlap",
            registration.consumer,
            registration.event_type,
            registration.function,
            registration.versions.0,
            registration.versions.1,
            other.function,
            other.file,
            other.line,
            other.versions.0,
            other.versions.1,
        ),
    )
}

fn missing_states<'a>(
    registration: &'a HandlerRegistration,
    states: &'a States,
) -> impl Iterator<Item = Problem> + 'a {
    (registration.states)()
        .into_iter()
        .filter(|state| !states.contains(state.type_id))
        .map(|state| {
            at(
                registration,
                format!(
                    "the handler `{}` wants a state of type `{}` and none is set; \
                     call `.state(..)` with one",
                    registration.function, state.type_name
                ),
            )
        })
}

fn wrong_database<DB: Backend>(registration: &HandlerRegistration) -> Problem {
    at(
        registration,
        format!(
            "the handler `{}` of the consumer `{}` does not work on {}; make it generic over the \
             database, or leave the consumer out by `.select_consumers(..)`",
            registration.function,
            registration.consumer,
            DB::NAME,
        ),
    )
}

fn at(registration: &HandlerRegistration, sentence: String) -> Problem {
    Problem::at(registration.file, registration.line, sentence)
}
