//! The URL and librdkafka's settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::broker::options::{BrokerOptions, Credentials};
use crate::broker::{BoxError, ConfigError};

const PORT: &str = "9092";
/// What each promise of the adapter rests on, with the aliases that librdkafka knows.
const RESERVED: [&str; 26] = [
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "batch.num.messages",
    "bootstrap.servers",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "auto.commit.enable",
    "enable.auto.offset.store",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.protocol",
    "isolation.level",
    "message.timeout.ms",
    "metadata.broker.list",
    "partitioner",
    "request.required.acks",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "ssl.ca.pem",
    "log.queue",
    "transactional.id",
    "topic.metadata.propagation.max.ms",
];
/// Where systems keep the well-known certificates.
const WELL_KNOWN: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Where the brokers are and how to talk to them.
#[derive(Clone)]
pub(super) struct Config {
    servers: String,
    is_tls: bool,
    credentials: Option<Credentials>,
    root_certificate: Option<PathBuf>,
    settings: BTreeMap<String, String>,
}

impl Config {
    /// Of `kafka[s]://[user:password@]host[:port][,host[:port]...][?setting=value&...]`.
    pub(super) fn parse(url: &str, options: &BrokerOptions) -> Result<Self, ConfigError> {
        let (is_tls, rest) = match url.split_once("://") {
            Some(("kafka", rest)) => (false, rest),
            Some(("kafkas", rest)) => (true, rest),
            _ => {
                return Err(ConfigError::new(
                    "the URL of Kafka begins with kafka:// or, for TLS, kafkas://",
                ));
            }
        };
        if is_tls && !cfg!(feature = "kafka-tls") {
            return Err(ConfigError::new(
                "kafkas:// needs the feature `kafka-tls` of outbox-runtime; switch it on in Cargo.toml",
            ));
        }
        let (rest, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            return Err(ConfigError::new(
                "the URL of Kafka has no path; topics are named by BrokerOptions::topics",
            ));
        }
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let mut config = Self {
            servers: servers(hosts)?,
            is_tls,
            credentials: match &options.credentials {
                Some(credentials) => Some(credentials.clone()),
                None => user.map(credentials).transpose()?,
            },
            root_certificate: options.root_certificate.clone(),
            settings: BTreeMap::new(),
        };
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').ok_or_else(|| {
                ConfigError::new(
                    "a parameter of the URL of Kafka has no value; allowed are librdkafka's settings, \
                     such as ?session.timeout.ms=6000",
                )
            })?;
            let (name, value) = (decoded(name)?, decoded(value)?);
            // A name that nobody knows may be a part of a password.
            config.add(&name, &value, "a parameter of the URL of Kafka")?;
        }
        Ok(config)
    }

    /// Adds one of librdkafka's settings.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        self.add(name, value, &format!("{name:?}"))
    }

    /// The same; `called` is how errors speak of a setting that there is not.
    fn add(&mut self, name: &str, value: &str, called: &str) -> Result<(), ConfigError> {
        if RESERVED.contains(&name) {
            return Err(ConfigError::new(format!(
                "the setting {name} of Kafka's client can't be changed: what the adapter promises \
                 rests on it, or the URL or an option of it says it; all others of librdkafka's \
                 CONFIGURATION.md can"
            )));
        }
        // One of two names of the same, which must not be set twice.
        let name = match name {
            "sasl.mechanisms" => "sasl.mechanism",
            other => other,
        };
        let mut alone = ClientConfig::new();
        alone.set(name, value);
        match alone.create_native_config() {
            Ok(_) => {
                self.settings.insert(name.to_owned(), value.to_owned());
                Ok(())
            }
            Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => {
                Err(ConfigError::new(format!(
                    "{called} is no setting of Kafka's client; allowed are those of librdkafka's \
                     CONFIGURATION.md"
                )))
            }
            // Without the value, which may be a secret.
            Err(_) => Err(ConfigError::new(format!(
                "Kafka's client can't take this value for {name}; librdkafka's CONFIGURATION.md says \
                 what it may be, and some settings need the feature `kafka-tls`"
            ))),
        }
    }

    /// What a client gets: `defaults`, which users may change, and `fixed`, which they may not.
    pub(super) fn client<const D: usize, const F: usize>(
        &self,
        defaults: [(&str, &str); D],
        fixed: [(&str, &str); F],
    ) -> Result<ClientConfig, BoxError> {
        let mut client = ClientConfig::new();
        client.set_log_level(match self.settings.contains_key("debug") {
            true => RDKafkaLogLevel::Debug,
            false => RDKafkaLogLevel::Info,
        });
        // A broker that is back is found within a second.
        client.set("reconnect.backoff.max.ms", "1000");
        for (name, value) in defaults {
            client.set(name, value);
        }
        if self.credentials.is_some() {
            client.set("sasl.mechanism", "PLAIN");
        }
        if self.is_tls {
            self.trust(&mut client)?;
        }
        for (name, value) in &self.settings {
            client.set(name, value);
        }
        for (name, value) in fixed {
            client.set(name, value);
        }
        client.set("bootstrap.servers", &self.servers);
        let is_sasl = self.credentials.is_some() || self.settings.contains_key("sasl.mechanism");
        let protocol = match (self.is_tls, is_sasl) {
            (false, false) => "plaintext",
            (false, true) => "sasl_plaintext",
            (true, false) => "ssl",
            (true, true) => "sasl_ssl",
        };
        client.set("security.protocol", protocol);
        if let Some(credentials) = &self.credentials {
            client.set("sasl.username", &credentials.user);
            client.set("sasl.password", &credentials.password);
        }
        Ok(client)
    }

    /// What must not be in any text.
    pub(super) fn secret(&self) -> Option<&str> {
        let password = self.credentials.as_ref().map(|known| &*known.password);
        password.filter(|password| !password.is_empty())
    }

    /// Where the brokers are, without who signs in there.
    pub(super) fn servers(&self) -> &str {
        &self.servers
    }

    pub(super) const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The names of what was set: values may be secrets.
    pub(super) fn setting_names(&self) -> Vec<&str> {
        self.settings.keys().map(String::as_str).collect()
    }

    /// librdkafka forgets the well-known certificates as soon as it is told of others.
    fn trust(&self, client: &mut ClientConfig) -> Result<(), BoxError> {
        let Some(file) = &self.root_certificate else {
            return Ok(());
        };
        let pem = fs::read_to_string(file).map_err(|error| {
            let file = file.display();
            format!("the root certificate {file} can't be read: {error}")
        })?;
        client.set("ssl.ca.pem", pem);
        let well_known = WELL_KNOWN.iter().find(|bundle| Path::new(bundle).is_file());
        if let Some(bundle) = well_known {
            client.set("ssl.ca.location", *bundle);
        }
        Ok(())
    }
}

fn servers(hosts: &str) -> Result<String, ConfigError> {
    let servers: Vec<String> = hosts.split(',').map(server).collect::<Result<_, _>>()?;
    Ok(servers.join(","))
}

fn server(host: &str) -> Result<String, ConfigError> {
    let (name, port) = match host.rsplit_once(':') {
        // Colons within brackets are those of an IPv6 address.
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, PORT),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    let is_known = port.parse::<u16>().is_ok_and(|port| port > 0);
    if name.is_empty() || !name.chars().all(is_plain) || !is_known {
        return Err(ConfigError::new(
            "the URL of Kafka needs its brokers as host:port, with commas between them",
        ));
    }
    Ok(format!("{name}:{port}"))
}

fn credentials(user: &str) -> Result<Credentials, ConfigError> {
    let (user, password) = user.split_once(':').ok_or_else(|| {
        ConfigError::new(
            "the URL of Kafka has a user without a password; write user:password@, or use \
             BrokerOptions::credentials",
        )
    })?;
    Credentials::decode(user, password).ok_or_else(not_utf8)
}

fn decoded(text: &str) -> Result<String, ConfigError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| not_utf8())
}

fn not_utf8() -> ConfigError {
    ConfigError::new("the URL of Kafka is not UTF-8 when its % escapes are decoded")
}

#[cfg(test)]
mod tests;
