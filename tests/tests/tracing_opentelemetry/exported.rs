use std::sync::{Mutex, OnceLock, PoisonError};

use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

static EXPORTED: Mutex<Vec<SpanData>> = Mutex::new(Vec::new());
static INSTALLED: OnceLock<SdkTracerProvider> = OnceLock::new();

/// A span as a tracing backend has it.
#[derive(Debug, Clone)]
pub(crate) struct Exported(pub(crate) SpanData);

impl Exported {
    /// The `traceparent` of a message that was created in it.
    pub(crate) fn traceparent(&self) -> String {
        let context = &self.0.span_context;
        format!("00-{}-{}-01", context.trace_id(), context.span_id())
    }

    pub(crate) fn trace_id(&self) -> String {
        self.0.span_context.trace_id().to_string()
    }

    pub(crate) fn id(&self) -> SpanId {
        self.0.span_context.span_id()
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes.iter();
        attributes
            .find(|attribute| attribute.key.as_str() == name)
            .map(|attribute| attribute.value.to_string())
    }
}

/// Exports what all tests of this program do from now on.
pub(crate) fn install() {
    INSTALLED.get_or_init(|| {
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(Keep)
            .build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("tests"));
        let subscriber = Registry::default().with(LevelFilter::INFO).with(layer);
        tracing::subscriber::set_global_default(subscriber).unwrap();
        provider
    });
}

/// The spans that ended and hold, in the order of their beginning.
pub(crate) fn ended(wanted: impl Fn(&Exported) -> bool) -> Vec<Exported> {
    let exported = EXPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut spans: Vec<_> = exported
        .iter()
        .cloned()
        .map(Exported)
        .filter(wanted)
        .collect();
    spans.sort_by_key(|span| span.0.start_time);
    spans
}

/// The spans of a business process that ended.
pub(crate) fn of_process(correlation_id: &str) -> Vec<Exported> {
    ended(|span| {
        let found = span.attribute("messaging.message.conversation_id");
        found.as_deref() == Some(correlation_id)
    })
}

#[derive(Debug)]
struct Keep;

impl SpanExporter for Keep {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        let mut exported = EXPORTED.lock().unwrap_or_else(PoisonError::into_inner);
        exported.append(&mut batch);
        Ok(())
    }
}
