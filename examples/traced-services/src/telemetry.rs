//! What each service does to have its spans exported under its own name.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::Context;
use opentelemetry::trace::{SpanBuilder, Tracer, TracerProvider as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    SdkTracer, SdkTracerProvider, Span, SpanData, SpanExporter, TracerProviderBuilder,
};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

use crate::Failure;

/// All spans of all services that ended: what a tracing backend would have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collected(Arc<Mutex<Vec<(&'static str, SpanData)>>>);

impl Collected {
    /// The spans, each with the service that it is of.
    pub(crate) fn spans(&self) -> Vec<(&'static str, SpanData)> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Has the spans of the whole program go to OpenTelemetry.
///
/// A service that is a program of its own gives the layer its tracer, and that is all. Here three
/// services are one program, so the layer gets a tracer that asks the thread whose it is.
pub(crate) fn install() -> Result<(), Failure> {
    let otherwise = SdkTracerProvider::default().tracer("traced-services");
    let layer = tracing_opentelemetry::layer().with_tracer(OfThread { otherwise });
    let subscriber = Registry::default().with(LevelFilter::INFO).with(layer);
    Ok(tracing::subscriber::set_global_default(subscriber)?)
}

/// Makes this thread the service's: its spans carry the service's name from now on.
pub(crate) fn enter_service(
    service: &'static str,
    collected: &Collected,
) -> Result<SdkTracerProvider, Failure> {
    let provider = SdkTracerProvider::builder()
        .with_resource(Resource::builder().with_service_name(service).build())
        .with_simple_exporter(Keep {
            service,
            collected: collected.clone(),
        });
    let provider = with_otlp(provider)?.build();
    TRACER.set(Some(provider.tracer("traced-services")));
    Ok(provider)
}

thread_local! {
    static TRACER: RefCell<Option<SdkTracer>> = const { RefCell::new(None) };
}

struct OfThread {
    /// For spans of no service, which nobody exports.
    otherwise: SdkTracer,
}

impl Tracer for OfThread {
    type Span = Span;

    fn build_with_context(&self, builder: SpanBuilder, parent: &Context) -> Span {
        TRACER.with_borrow(|tracer| {
            let tracer = tracer.as_ref().unwrap_or(&self.otherwise);
            tracer.build_with_context(builder, parent)
        })
    }
}

/// Exports to a collector as well, if one is named.
#[cfg(feature = "otlp")]
fn with_otlp(provider: TracerProviderBuilder) -> Result<TracerProviderBuilder, Failure> {
    if std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_none() {
        return Ok(provider);
    }
    // It reads the endpoint from the environment itself.
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .build()?;
    Ok(provider.with_batch_exporter(exporter))
}

#[cfg(not(feature = "otlp"))]
fn with_otlp(provider: TracerProviderBuilder) -> Result<TracerProviderBuilder, Failure> {
    match std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT") {
        Some(_) => Err("OTEL_EXPORTER_OTLP_ENDPOINT is set; run with `--features otlp`".into()),
        None => Ok(provider),
    }
}

/// Keeps the spans of a service in memory.
#[derive(Debug)]
struct Keep {
    service: &'static str,
    collected: Collected,
}

impl SpanExporter for Keep {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let mut spans = self
            .collected
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        spans.extend(batch.into_iter().map(|span| (self.service, span)));
        Ok(())
    }
}
