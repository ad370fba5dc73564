use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;

use super::HandlerError;

/// Hands a clone of the application's state to a handler.
///
/// ```
/// # use outbox_runtime::State;
/// #[derive(Clone)]
/// struct Limits { per_order: u32 }
///
/// fn largest(State(limits): State<Limits>) -> u32 { limits.per_order }
/// # assert_eq!(largest(State(Limits { per_order: 3 })), 3);
/// ```
///
/// `App::state` sets the value; an application whose handlers want a state that was never set
/// does not start.
#[derive(Debug, Clone, Copy)]
pub struct State<T>(
    /// The state.
    pub T,
);

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The states of an application, by type.
#[derive(Default)]
pub struct States {
    values: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl States {
    /// Sets the state of type `T`, in place of an earlier one.
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// Whether a state of that type is set.
    pub fn contains(&self, type_id: TypeId) -> bool {
        self.values.contains_key(&type_id)
    }

    /// A clone of the state of type `T`.
    ///
    /// # Errors
    /// A permanent [`HandlerError`] when none is set.
    pub fn extract<T: Clone + Send + Sync + 'static>(&self) -> Result<State<T>, HandlerError> {
        self.values
            .get(&TypeId::of::<T>())
            .and_then(|value| value.downcast_ref::<T>())
            .map(|value| State(value.clone()))
            .ok_or_else(|| {
                HandlerError::permanent(format!(
                    "no state of type {} is set; call `App::state` with one",
                    type_name::<T>()
                ))
            })
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States")
            .field("count", &self.values.len())
            .finish()
    }
}
