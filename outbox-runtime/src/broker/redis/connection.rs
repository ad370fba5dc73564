use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Cmd, RedisConnectionInfo, RedisResult, Script, ServerErrorKind, Value,
};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use super::failure::Failure;
use super::tls;
use super::url::Address;
use crate::broker::{BrokerOptions, ConfigError};

/// How many commands of one connection wait to be written before their senders do.
const WAITING_COMMANDS: usize = 256;

/// Where connections go, and with what.
pub(super) struct Server {
    pub(super) address: Address,
    tls: Option<(ServerName<'static>, Arc<ClientConfig>)>,
    sign_in: RedisConnectionInfo,
}

impl Server {
    pub(super) fn new(url: &str, options: &BrokerOptions) -> Result<Self, ConfigError> {
        let address = Address::parse(url)?;
        let tls = match address.is_tls {
            false => None,
            true => {
                let name = ServerName::try_from(address.host.clone());
                let name = name.map_err(|_| {
                    ConfigError::new(
                        "the host in the URL of Redis is no name that a certificate can have",
                    )
                })?;
                Some((name, tls::config(options.root_certificate.as_deref())?))
            }
        };
        let mut sign_in = RedisConnectionInfo::default()
            .set_db(i64::from(address.database))
            .set_protocol(address.protocol)
            .set_skip_set_lib_name();
        let of_url = address.credentials.as_ref();
        if let Some(credentials) = options.credentials.as_ref().or(of_url) {
            if !credentials.user.is_empty() {
                sign_in = sign_in.set_username(&credentials.user);
            }
            sign_in = sign_in.set_password(&credentials.password);
        }
        Ok(Self {
            address,
            tls,
            sign_in,
        })
    }

    /// A connection of its own.
    pub(super) async fn connect(&self) -> Result<Link, Failure> {
        let unreachable = |error: std::io::Error| Failure::unreachable(&self.address, &error);
        let place = (self.address.host.as_str(), self.address.port);
        let stream = TcpStream::connect(place).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let link = match &self.tls {
            None => self.talk_over(stream).await?,
            Some((name, config)) => {
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name.clone(), stream).await;
                self.talk_over(stream.map_err(unreachable)?).await?
            }
        };
        info!(address = %self.address, "connected to Redis");
        Ok(link)
    }

    async fn talk_over(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Link, Failure> {
        // Each caller has a limit of its own.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(WAITING_COMMANDS);
        let connecting = MultiplexedConnection::new_with_config(&self.sign_in, stream, config);
        let (connection, driver) = connecting.await?;
        Ok(Link {
            connection,
            state: Arc::new(State {
                driver: AbortOnDropHandle::new(tokio::spawn(driver)),
                is_retired: AtomicBool::new(false),
            }),
        })
    }
}

/// A connection that is shared, made when it is first needed and again after it broke.
pub(super) struct Shared {
    server: Arc<Server>,
    current: Mutex<Option<Link>>,
}

impl Shared {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            current: Mutex::new(None),
        }
    }

    /// The connection, as long as the limit allows. Who waits here while another connects gets the
    /// same; a caller that is dropped makes room for the next.
    pub(super) async fn get(&self, within: Duration) -> Result<Link, Failure> {
        let getting = async {
            let mut current = self.current.lock().await;
            if let Some(link) = current.as_ref().filter(|link| link.is_usable()) {
                return Ok(link.clone());
            }
            *current = None;
            let link = self.server.connect().await?;
            *current = Some(link.clone());
            Ok(link)
        };
        let limited = timeout(within, getting).await;
        limited.unwrap_or_else(|_| Err(Failure::late(within)))
    }
}

/// A connection. It closes when its last clone is dropped, whatever it is waiting for.
#[derive(Clone)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    state: Arc<State>,
}

struct State {
    driver: AbortOnDropHandle<()>,
    is_retired: AtomicBool,
}

impl Link {
    /// Sends a command and waits for its answer. After a failure of the connection nobody new is
    /// given this one.
    ///
    /// # Cancel safety
    /// A dropped call may or may not reach the server. The connection stays in order.
    pub(super) async fn run(&self, command: &Cmd, within: Duration) -> Result<Value, Failure> {
        self.in_time(self.ask(command), within).await
    }

    /// The same for a command that [`script_call`] began, with the script sent along if the server
    /// does not know it.
    pub(super) async fn run_script(
        &self,
        script: &Script,
        call: &Cmd,
        within: Duration,
    ) -> Result<Value, Failure> {
        let running = async {
            loop {
                match self.ask(call).await {
                    // Nothing was done, and it may be forgotten again before it is run.
                    Err(error) if error.kind() == ServerErrorKind::NoScript.into() => {
                        script.load_async(&mut self.connection.clone()).await?;
                    }
                    answer => break answer,
                }
            }
        };
        self.in_time(running, within).await
    }

    /// Has the next caller connect anew.
    pub(super) fn retire(&self) {
        self.state.is_retired.store(true, Ordering::Relaxed);
    }

    fn is_usable(&self) -> bool {
        !self.state.is_retired.load(Ordering::Relaxed) && !self.state.driver.is_finished()
    }

    async fn ask(&self, command: &Cmd) -> RedisResult<Value> {
        let answer: Value = command.query_async(&mut self.connection.clone()).await?;
        answer.extract_error()
    }

    async fn in_time(
        &self,
        answer: impl Future<Output = RedisResult<Value>>,
        within: Duration,
    ) -> Result<Value, Failure> {
        let failure = match timeout(within, answer).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => Failure::from(error),
            Err(_) => Failure::late(within),
        };
        if failure.is_of_connection() {
            self.retire();
        }
        Err(failure)
    }
}

/// A call of the script on one key, to which its arguments are added.
pub(super) fn script_call(script: &Script, key: &str) -> Cmd {
    let mut call = ::redis::cmd("EVALSHA");
    call.arg(script.get_hash()).arg(1).arg(key);
    call
}
