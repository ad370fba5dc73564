//! Layers: inside the runtime, imports point downwards or stay inside a folder.

use super::Breach;
use super::paths::{self, NamedPath};
use super::source::Source;

const RUNTIME: &str = "outbox-runtime/src";

/// Each layer with those below it that it may name, lowest first.
///
/// Not only an order: the relay treats a payload as bytes and knows no
/// handler, a handler knows no broker, and the two ports do not know each other.
const LAYERS: &[(&str, &str)] = &[
    ("domain", ""),
    // What keeps a program from starting: a sentence and a place, for all that check.
    ("problem", ""),
    // How errors are spoken of.
    ("error_text", ""),
    // What tests get hold of, wherever it is.
    ("clock", ""),
    ("fault", ""),
    // Spans and metrics: whoever does something may tell of it.
    ("telemetry", "domain clock"),
    ("store", "domain"),
    ("broker", "domain clock"),
    ("backoff", "domain"),
    ("retry", "domain backoff"),
    ("health", "domain"),
    ("unit_of_work", "domain telemetry clock fault store"),
    ("handler", "domain problem store unit_of_work"),
    (
        "retention",
        "domain telemetry clock store health unit_of_work",
    ),
    ("dead_letters", "domain clock store unit_of_work"),
    (
        "relay",
        "domain telemetry clock fault problem error_text store broker backoff retry health unit_of_work",
    ),
    (
        "inbox",
        "domain telemetry clock fault problem error_text store broker backoff retry health unit_of_work handler",
    ),
    // The backends, each in a folder of its own: they know their port alone.
    ("store/*", "domain store"),
    ("broker/*", "domain clock broker"),
];

/// They join everything, so nothing below may name them.
const TOP: [&str; 5] = ["app", "testing", "prelude", "__private", "lib"];

/// The backends that are folders under their port.
pub(super) const BACKENDS: [(&str, &[&str]); 2] = [
    ("store", &["sqlite", "postgres", "mysql"]),
    (
        "broker",
        &["in_process", "nats", "kafka", "rabbitmq", "redis"],
    ),
];

pub(super) fn check(source: &Source) -> Vec<Breach> {
    let Some(path) = source.under(RUNTIME) else {
        return Vec::new();
    };
    let segments: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    let from = Layer::of(|index| segments.get(index).copied().unwrap_or_default());
    if TOP.contains(&from.top) {
        return Vec::new();
    }
    let Some(allowed) = from.allowed() else {
        let message = format!(
            "`{}` has no layer: say in xtask/src/tidy/layers.rs what it may import",
            from.top
        );
        return vec![Breach { line: 1, message }];
    };
    let named = paths::of_crate(source, RUNTIME);
    named
        .iter()
        .filter_map(|path| breach(&from, allowed, path))
        .collect()
}

fn breach(from: &Layer<'_>, allowed: &str, path: &NamedPath) -> Option<Breach> {
    let to = Layer::of(|index| path.segment(index));
    let known = to.allowed().is_some() || TOP.contains(&to.top);
    let fine = *from == to
        || to.top.is_empty()
        || (to.backend.is_none() && allowed.split(' ').any(|layer| layer == to.top))
        || (!known && path.is_macro);
    let message = if fine {
        return None;
    } else if known {
        format!("`{from}` must not import from `{to}`: imports point downwards")
    } else {
        format!(
            "`crate::{}` goes through the crate's root: name the module that owns it",
            to.top
        )
    };
    Some(Breach {
        line: path.line,
        message,
    })
}

/// A folder under the root, or a backend's folder under its port.
#[derive(Debug, PartialEq, Eq)]
struct Layer<'a> {
    top: &'a str,
    backend: Option<&'a str>,
}

impl<'a> Layer<'a> {
    fn of(segment: impl Fn(usize) -> &'a str) -> Self {
        let (top, second) = (segment(0), segment(1));
        let is_backend = BACKENDS
            .iter()
            .any(|(port, backends)| *port == top && backends.contains(&second));
        Self {
            top,
            backend: is_backend.then_some(second),
        }
    }

    fn allowed(&self) -> Option<&'static str> {
        let name = match (self.top, self.backend) {
            ("store", Some(_)) => "store/*",
            ("broker", Some(_)) => "broker/*",
            (top, _) => top,
        };
        LAYERS
            .iter()
            .find(|(layer, _)| *layer == name)
            .map(|(_, allowed)| *allowed)
    }
}

impl std::fmt::Display for Layer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.top)?;
        self.backend
            .map_or(Ok(()), |backend| write!(f, "/{backend}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;

    fn in_runtime(file: &str, text: &str) -> Vec<String> {
        breaches(&format!("outbox-runtime/src/{file}"), text)
    }

    #[test]
    fn imports_downwards_and_within_a_layer_are_fine() {
        for (file, text) in [
            (
                "relay/publish.rs",
                "use crate::{broker::Publisher, domain::Message, relay::Batch};",
            ),
            ("store/mod.rs", "use crate::store::error::Error;"),
            (
                "store/sqlite/outbox.rs",
                "use super::super::Error; use crate::domain::Key;",
            ),
            (
                "app/mod.rs",
                "use crate::inbox::Consumer; use crate::store::sqlite::Sqlite;",
            ),
            ("domain/key.rs", "/// See [`crate::app::App`].\nfn f() {}"),
        ] {
            assert_eq!(in_runtime(file, text), [""; 0], "{file}");
        }
    }

    #[test]
    fn imports_upwards_and_sideways_are_breaches() {
        for (file, text, expected) in [
            (
                "domain/key.rs",
                "use crate::store::Error;",
                "`domain` must not import from `store`",
            ),
            (
                "store/outbox.rs",
                "use crate::broker::X;",
                "`store` must not import from `broker`",
            ),
            (
                "relay/mod.rs",
                "use crate::handler::X;",
                "`relay` must not import from `handler`",
            ),
            (
                "handler/mod.rs",
                "use crate::broker::X;",
                "`handler` must not import from `broker`",
            ),
            (
                "inbox/mod.rs",
                "super::app::App::new()",
                "`inbox` must not import from `app`",
            ),
            (
                "store/sqlite/a.rs",
                "use crate::store::postgres::X;",
                "`store/sqlite` must not import from `store/postgres`",
            ),
            (
                "relay/mod.rs",
                "use crate::Outbox;",
                "`crate::Outbox` goes through the crate's root",
            ),
        ] {
            let found = in_runtime(file, text);
            assert!(
                found.iter().any(|message| message.contains(expected)),
                "{file}: {found:?}"
            );
        }
    }

    #[test]
    fn a_new_module_must_be_given_a_layer() {
        assert!(in_runtime("misc.rs", "")[0].contains("`misc` has no layer"));
    }
}
