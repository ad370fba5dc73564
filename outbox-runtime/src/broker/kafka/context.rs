//! What librdkafka tells of itself.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use tracing::debug;

use super::config::Config;

/// Listens to a client of librdkafka: its log goes to `tracing`, and its last trouble is kept to be
/// told with the errors that come of it.
#[derive(Clone)]
pub(super) struct Context(Arc<Inner>);

struct Inner {
    secret: Option<String>,
    trouble: Mutex<Option<String>>,
}

impl Context {
    pub(super) fn new(config: &Config) -> Self {
        Self(Arc::new(Inner {
            secret: config.secret().map(str::to_owned),
            trouble: Mutex::default(),
        }))
    }

    /// The last trouble that the client met.
    pub(super) fn trouble(&self) -> Option<String> {
        let trouble = self
            .0
            .trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        trouble.clone()
    }

    /// An error's text with the last trouble, which says more than most errors.
    pub(super) fn explain(&self, error: impl fmt::Display) -> String {
        let error = self.without_secret(&error.to_string());
        match self.trouble() {
            Some(trouble) => format!("{error} (last trouble with Kafka: {trouble})"),
            None => error,
        }
    }

    /// A text of a server's or of librdkafka's, without the password.
    fn without_secret(&self, text: &str) -> String {
        match &self.0.secret {
            Some(secret) => text.replace(secret, "(password)"),
            None => text.to_owned(),
        }
    }
}

impl ClientContext for Context {
    /// For those who look into it: what matters is in the errors.
    fn log(&self, level: RDKafkaLogLevel, fac: &str, log_message: &str) {
        let text = self.without_secret(log_message);
        debug!(?level, fac, text, "librdkafka");
    }

    fn stats_raw(&self, _: &[u8]) {}

    fn error(&self, error: KafkaError, reason: &str) {
        let text = self.without_secret(reason);
        debug!(%error, text, "librdkafka");
        let mut trouble = self
            .0
            .trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *trouble = Some(text);
    }
}
