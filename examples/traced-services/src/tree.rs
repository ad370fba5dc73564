//! The collected spans as a tree, and whether it is the one that the program promises.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use opentelemetry::trace::SpanId;
use opentelemetry_sdk::trace::SpanData;

/// Who does what, and in which span.
const EXPECTED: [[&str; 4]; 10] = [
    ["orders", "commit", "orders", "POST /orders"],
    ["orders", "publish orders.order-placed", "orders", "commit"],
    ["payment", "handle payment.capture", "orders", "commit"],
    ["payment", "commit", "payment", "handle payment.capture"],
    [
        "payment",
        "publish payment.payment-captured",
        "payment",
        "commit",
    ],
    [
        "shipping",
        "handle shipping.send-parcel",
        "payment",
        "commit",
    ],
    [
        "shipping",
        "commit",
        "shipping",
        "handle shipping.send-parcel",
    ],
    [
        "shipping",
        "publish shipping.parcel-sent",
        "shipping",
        "commit",
    ],
    ["orders", "handle orders.note-parcel", "shipping", "commit"],
    ["orders", "commit", "orders", "handle orders.note-parcel"],
];

/// The spans of the request's trace, by their id.
pub(crate) struct Tree(BTreeMap<[u8; 8], (&'static str, SpanData)>);

impl Tree {
    /// Finds the trace of the request among all that was collected.
    ///
    /// # Errors
    /// Says what makes it another trace than expected.
    pub(crate) fn of_request(spans: Vec<(&'static str, SpanData)>) -> Result<Self, String> {
        let mut roots = spans.iter().filter(|(_, span)| span.name == "POST /orders");
        let (Some((_, root)), None) = (roots.next(), roots.next()) else {
            return Err("there is not one request".to_owned());
        };
        let trace_id = root.span_context.trace_id();
        let of_it = spans
            .into_iter()
            .filter(|(_, span)| span.span_context.trace_id() == trace_id);
        let by_id =
            of_it.map(|(service, span)| (span.span_context.span_id().to_bytes(), (service, span)));
        let tree = Self(by_id.collect());
        tree.check()?;
        Ok(tree)
    }

    fn check(&self) -> Result<(), String> {
        let mut found = BTreeSet::new();
        let mut roots = 0;
        for (service, span) in self.0.values() {
            match self.0.get(&span.parent_span_id.to_bytes()) {
                Some((of, parent)) => {
                    found.insert([*service, &*span.name, *of, &*parent.name]);
                }
                None => roots += 1,
            }
        }
        if roots != 1 {
            return Err(format!("{roots} spans of the trace have no parent in it"));
        }
        let expected = BTreeSet::from(EXPECTED);
        if found == expected {
            return Ok(());
        }
        let missing: Vec<_> = expected.difference(&found).collect();
        let more: Vec<_> = found.difference(&expected).collect();
        Err(format!(
            "not in the trace: {missing:?}; not expected: {more:?}"
        ))
    }

    /// The tree as text, with each span's service and length.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if let Some((_, span)) = self.0.values().next() {
            let _ = writeln!(text, "trace {}", span.span_context.trace_id());
        }
        let is_root = |span: &SpanData| !self.0.contains_key(&span.parent_span_id.to_bytes());
        self.write(&mut text, 0, &is_root);
        text
    }

    fn write(&self, text: &mut String, depth: usize, wanted: &dyn Fn(&SpanData) -> bool) {
        let mut spans: Vec<_> = self.0.values().filter(|(_, span)| wanted(span)).collect();
        spans.sort_by_key(|(_, span)| span.start_time);
        for (service, span) in spans {
            let length = span
                .end_time
                .duration_since(span.start_time)
                .unwrap_or_default();
            let indent = "  ".repeat(depth);
            let name = format!("{indent}{}", span.name);
            let _ = writeln!(
                text,
                "{service:<9} {name:<52} {:>9.1} ms",
                length.as_secs_f64() * 1e3
            );
            let id: SpanId = span.span_context.span_id();
            self.write(text, depth + 1, &|child| child.parent_span_id == id);
        }
    }
}
