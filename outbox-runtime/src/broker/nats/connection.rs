use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use tokio::sync::OnceCell;
use tracing::{info, warn};

use crate::broker::options::Credentials;
use crate::broker::{BoxError, BrokerOptions, ConfigError};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// One connection for all that this process does at the servers. It is made when it is first
/// needed, and after a break the client makes it anew by itself.
#[derive(Clone)]
pub(super) struct Connection {
    servers: Vec<ServerAddr>,
    credentials: Option<Credentials>,
    token: Option<String>,
    credentials_file: Option<PathBuf>,
    root_certificate: Option<PathBuf>,
    timeout: Duration,
    established: Arc<OnceCell<Established>>,
}

/// What there is once it has been made.
#[derive(Clone)]
pub(super) struct Established {
    pub(super) client: Client,
    pub(super) jetstream: Context,
}

impl Connection {
    pub(super) fn new(url: &str, options: &BrokerOptions) -> Result<Self, ConfigError> {
        let parts: Vec<Server> = url.split(',').map(server).collect::<Result<_, _>>()?;
        let of_url = parts.iter().find_map(|server| server.signs_in.clone());
        let (credentials, token) = match (&options.credentials, of_url) {
            (Some(credentials), _) => (Some(credentials.clone()), None),
            (None, Some(SignsIn::As(credentials))) => (Some(credentials), None),
            (None, Some(SignsIn::By(token))) => (None, Some(token)),
            (None, None) => (None, None),
        };
        Ok(Self {
            servers: parts.into_iter().map(|server| server.address).collect(),
            credentials,
            token,
            credentials_file: None,
            root_certificate: options.root_certificate.clone(),
            timeout: options.confirm_within,
            established: Arc::default(),
        })
    }

    pub(super) fn set_credentials_file(&mut self, path: PathBuf) {
        self.credentials_file = Some(path);
        // What was made before was signed in differently.
        self.established = Arc::default();
    }

    /// The connection, if it stands at this moment.
    pub(super) async fn get(&self) -> Result<&Established, BoxError> {
        let established = self
            .established
            .get_or_try_init(|| self.establish())
            .await?;
        match established.client.connection_state() {
            State::Connected => Ok(established),
            _ => Err(
                "the connection to NATS is down; it is made anew as soon as a server answers"
                    .into(),
            ),
        }
    }

    async fn establish(&self) -> Result<Established, BoxError> {
        let mut options = ConnectOptions::new()
            .name("outbox")
            .connection_timeout(CONNECT_WITHIN)
            .request_timeout(Some(self.timeout))
            .reconnect_delay_callback(|attempts| {
                let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
                Duration::from_millis(50)
                    .saturating_mul(attempts)
                    .min(LONGEST_PAUSE)
            })
            .event_callback(tell);
        if let Some(credentials) = &self.credentials {
            let Credentials { user, password } = credentials.clone();
            options = options.user_and_password(user, password);
        }
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &self.credentials_file {
            options = options.credentials_file(path).await?;
        }
        if let Some(pem) = &self.root_certificate {
            options = options.add_root_certificates(pem.clone());
        }
        let client = options.connect(self.servers.as_slice()).await?;
        let jetstream = ContextBuilder::new()
            .timeout(self.timeout)
            .ack_timeout(self.timeout)
            .build(client.clone());
        Ok(Established { client, jetstream })
    }
}

async fn tell(event: Event) {
    match event {
        Event::Connected => info!("connected to NATS"),
        Event::Disconnected | Event::LameDuckMode | Event::Draining | Event::Closed => {
            warn!(%event, "the connection to NATS is in trouble");
        }
        Event::SlowConsumer(_) | Event::ServerError(_) | Event::ClientError(_) => {
            warn!(%event, "NATS reports an error");
        }
    }
}

struct Server {
    address: ServerAddr,
    signs_in: Option<SignsIn>,
}

#[derive(Clone)]
enum SignsIn {
    As(Credentials),
    By(String),
}

/// The URL is not repeated in the error: it may hold a password.
fn server(url: &str) -> Result<Server, ConfigError> {
    let refused = || {
        ConfigError::new(
            "the URL of NATS is not understood; write nats://[user:password@]host:port, or tls:// \
             for TLS, and several with commas between; percent-encode what is special in a password",
        )
    };
    let (scheme, rest) = url.trim().split_once("://").ok_or_else(refused)?;
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, rest),
    };
    let is_plain = !host.is_empty() && !host.contains(['/', '?', '#']);
    if !is_plain || !matches!(scheme, "nats" | "tls") {
        return Err(refused());
    }
    let address = format!("{scheme}://{host}").parse();
    let signs_in = match user.map(|user| user.split_once(':').ok_or(user)) {
        None => None,
        Some(Ok((user, password))) => Credentials::decode(user, password).map(SignsIn::As),
        Some(Err(token)) => Credentials::decode(token, "").map(|token| SignsIn::By(token.user)),
    };
    if user.is_some() && signs_in.is_none() {
        return Err(refused());
    }
    Ok(Server {
        address: address.map_err(|_| refused())?,
        signs_in,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_understood_or_refused_without_being_told() {
        for url in [
            "nats://localhost",
            "nats://127.0.0.1:4222",
            "tls://user:pass%40word@host:4222, nats://[::1]:4222",
        ] {
            assert!(Connection::new(url, &BrokerOptions::new()).is_ok(), "{url}");
        }
        for url in [
            "",
            "nats://",
            "localhost:4222",
            "http://secret@host",
            "nats://host:secret",
            "nats://u:secret@host/path",
            "nats://host?secret=1",
            "nats://host,,secret",
        ] {
            let Err(error) = Connection::new(url, &BrokerOptions::new()) else {
                panic!("{url} is taken");
            };
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
