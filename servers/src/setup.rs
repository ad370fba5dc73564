//! How a server is set up.

/// How a server is set up; [`Setup::default`] is what [`Server::start`](crate::Server::start) uses.
#[derive(Debug, Clone)]
pub struct Setup {
    pub(crate) credentials: Option<(String, String)>,
    pub(crate) tls: bool,
    pub(crate) durable: bool,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) give_up: fn() -> bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            credentials: None,
            tls: false,
            durable: false,
            environment: Vec::new(),
            give_up: || false,
        }
    }
}

impl Setup {
    /// Nobody else is let in; the URL tells them.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some((user.into(), password.into()));
        self
    }

    /// The server speaks TLS alone, with a certificate of an authority of its own
    /// ([`Server::ca`](crate::Server::ca)) for `localhost` and `127.0.0.1`.
    #[must_use]
    pub fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// PostgreSQL as it comes, with a commit that survives the end of the machine: for measuring.
    ///
    /// Otherwise, a commit survives the end of the server's processes.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Puts this into the server's environment.
    #[must_use]
    pub fn environment(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Asked while a server starts; its start fails once this says yes.
    #[must_use]
    pub fn give_up(mut self, give_up: fn() -> bool) -> Self {
        self.give_up = give_up;
        self
    }
}
