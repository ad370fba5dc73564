//! What operators, and the machines that work for them, ask the service for.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use outbox_runtime::health::{HealthHandle, Liveness, Readiness};

// ANCHOR: recorder
/// Upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0];

/// Collects all metrics of this process, from now on.
///
/// # Errors
/// When something in this process collects them already.
pub fn collect_metrics() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(&BUCKETS)?
        .install_recorder()
}
// ANCHOR_END: recorder

// ANCHOR: routes
#[derive(Clone)]
struct Operations {
    health: HealthHandle,
    metrics: PrometheusHandle,
}

/// The routes for operators. They tell hosts and causes, so keep them off the public address.
pub fn router(health: HealthHandle, metrics: PrometheusHandle) -> Router {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/metrics", get(show_metrics))
        .with_state(Operations { health, metrics })
}

/// 200, or 503 when a restart would help.
async fn live(State(of): State<Operations>) -> (StatusCode, Json<Liveness>) {
    let liveness = of.health.liveness();
    (status(liveness.is_alive()), Json(liveness))
}

/// 200, also while something waits for the broker, or 503 when no request should come.
async fn ready(State(of): State<Operations>) -> (StatusCode, Json<Readiness>) {
    let readiness = of.health.readiness();
    (status(readiness.is_ready()), Json(readiness))
}

const fn status(is_well: bool) -> StatusCode {
    if is_well {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

async fn show_metrics(State(of): State<Operations>) -> String {
    // What came since the last scrape goes into the histograms.
    of.metrics.run_upkeep();
    of.metrics.render()
}
// ANCHOR_END: routes
