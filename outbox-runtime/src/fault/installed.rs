use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::action::{Action, When};
use super::point::Point;

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    rules: Vec::new(),
    arrivals: [0; Point::ALL.len()],
    next_id: 0,
});

struct Registry {
    rules: Vec<Rule>,
    /// How often each point was reached.
    arrivals: [u64; Point::ALL.len()],
    next_id: u64,
}

struct Rule {
    id: u64,
    point: Point,
    when: When,
    action: Action,
    arrivals: u64,
}

/// An action that is installed until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it takes the action away"]
pub struct Installed {
    id: u64,
}

impl Installed {
    /// Leaves the action there for as long as the process lives.
    pub fn forever(self) {
        std::mem::forget(self);
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        registry().rules.retain(|rule| rule.id != self.id);
    }
}

/// Lets an action happen at a point. Several at one point happen in the order in which they were
/// installed, until one of them fails.
pub fn install(point: Point, when: When, action: Action) -> Installed {
    let mut registry = registry();
    let id = registry.next_id;
    registry.next_id += 1;
    registry.rules.push(Rule {
        id,
        point,
        when,
        action,
        arrivals: 0,
    });
    Installed { id }
}

/// How often a point was reached in this process, whether or not anything was installed there.
pub fn arrivals(point: Point) -> u64 {
    registry()
        .arrivals
        .get(point as usize)
        .copied()
        .unwrap_or(0)
}

/// The runtime is at a point.
pub(crate) async fn at(point: Point) -> io::Result<()> {
    // No lock is held while the actions happen.
    let actions = registry().arrive(point);
    for action in actions {
        action.happen(point).await?;
    }
    Ok(())
}

impl Registry {
    fn arrive(&mut self, point: Point) -> Vec<Action> {
        if let Some(arrivals) = self.arrivals.get_mut(point as usize) {
            *arrivals += 1;
        }
        let mut actions = Vec::new();
        for rule in self.rules.iter_mut().filter(|rule| rule.point == point) {
            rule.arrivals += 1;
            if rule.when.is_now(rule.arrivals) {
                actions.push(rule.action.clone());
            }
        }
        actions
    }
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points belong to the process, so the tests here use one that no other test of this program
    /// comes by at the same time: nothing here parks.
    #[tokio::test]
    async fn an_action_happens_when_it_is_to_and_goes_with_its_guard() {
        let before = arrivals(Point::BeforePark);
        let second = install(Point::BeforePark, When::Nth(2), Action::Fail);
        let mut failed = Vec::new();
        for _ in 0..4 {
            failed.push(at(Point::BeforePark).await.is_err());
        }
        assert_eq!(failed, [false, true, false, false]);
        drop(second);
        let each = install(Point::BeforePark, When::Every(2), Action::Fail);
        let mut failed = Vec::new();
        for _ in 0..4 {
            failed.push(at(Point::BeforePark).await.is_err());
        }
        assert_eq!(failed, [false, true, false, true]);
        drop(each);
        assert!(at(Point::BeforePark).await.is_ok());
        assert_eq!(arrivals(Point::BeforePark) - before, 9);
    }

    #[test]
    fn points_are_numbered_as_they_are_listed() {
        for (number, point) in Point::ALL.into_iter().enumerate() {
            assert_eq!(point as usize, number, "{point}");
        }
    }
}
