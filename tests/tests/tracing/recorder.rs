use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

static RECORDS: Mutex<Records> = Mutex::new(Records {
    spans: Vec::new(),
    text: String::new(),
});
static INSTALLED: OnceLock<()> = OnceLock::new();

struct Records {
    spans: Vec<Recorded>,
    /// All that was said: the fields of spans and events.
    text: String,
}

/// A span as a subscriber saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) name: &'static str,
    /// The name of the span in which it was opened.
    pub(crate) parent: Option<&'static str>,
    pub(crate) fields: BTreeMap<&'static str, String>,
}

impl Recorded {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// Records what all tests of this program do from now on.
pub(crate) fn install() {
    INSTALLED.get_or_init(|| {
        let ours = filter_fn(|metadata| {
            metadata.target().starts_with("outbox_runtime") || metadata.name() == "request"
        });
        let subscriber = Registry::default().with(Recorder.with_filter(ours));
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// The spans of a business process, in the order in which they were opened.
pub(crate) fn spans_of(correlation_id: &str) -> Vec<Recorded> {
    let records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_of =
        |span: &&Recorded| span.field("messaging.message.conversation_id") == Some(correlation_id);
    records.spans.iter().filter(is_of).cloned().collect()
}

/// All that was said so far.
pub(crate) fn text() -> String {
    let records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    records.text.clone()
}

struct Recorder;

/// Where a span is among the recorded ones.
struct Place(usize);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        records.text.push_str(&fields.text());
        records.spans.push(Recorded {
            name: span.name(),
            parent: span.parent().map(|parent| parent.name()),
            fields: fields.0,
        });
        span.extensions_mut().insert(Place(records.spans.len() - 1));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut fields = Fields::default();
        values.record(&mut fields);
        let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        records.text.push_str(&fields.text());
        let place = span.extensions().get::<Place>().unwrap().0;
        records.spans[place].fields.append(&mut fields.0);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        records.text.push_str(&fields.text());
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Fields {
    fn text(&self) -> String {
        format!("{:?}\n", self.0)
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}
