//! One macro never imports another: what two need stands beside them.

use super::Breach;
use super::paths;
use super::source::Source;

const CRATE: &str = "outbox-macros/src";
const MACROS: [&str; 4] = [
    "aggregate",
    "domain_event",
    "idempotent_handler",
    "value_object",
];

pub(super) fn check(source: &Source) -> Vec<Breach> {
    let Some(path) = source.under(CRATE) else {
        return Vec::new();
    };
    let own = path.split(['/', '.']).next().unwrap_or_default();
    // The entry points name every macro, and the shared parts name none.
    if own == "lib" {
        return Vec::new();
    }
    let named = paths::of_crate(source, CRATE);
    let others = named
        .iter()
        .filter(|path| path.segment(0) != own && MACROS.contains(&path.segment(0)));
    others
        .map(|path| Breach {
            line: path.line,
            message: format!(
                "`{own}` must not import from the macro `{}`",
                path.segment(0)
            ),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;

    #[test]
    fn a_macro_imports_only_itself_and_shared_parts() {
        let file = "outbox-macros/src/aggregate/expand.rs";
        assert_eq!(
            breaches(file, "use crate::{aggregate::model::Model, output};"),
            [""; 0]
        );
        assert_eq!(
            breaches(file, "use super::super::domain_event::Key;"),
            ["1: `aggregate` must not import from the macro `domain_event`"]
        );
        assert_eq!(
            breaches("outbox-macros/src/lib.rs", "use crate::aggregate::expand;"),
            [""; 0]
        );
    }
}
