use std::collections::BTreeMap;
use std::env;
use std::marker::PhantomData;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_runtime::broker::{Broker, BrokerOptions, Topics, open};
use outbox_servers::{Kind, REQUIRE_ALL, Server, Setup, StartError};
use uuid::Uuid;

use crate::brokers::TestBroker;

/// One test's place: a server, and a namespace of its own there.
pub struct Ground<B> {
    /// Where the server is.
    pub url: String,
    /// The namespace.
    pub topics: Topics,
    /// The server, if it is this test's own.
    pub server: Option<Server>,
    kind: PhantomData<B>,
}

impl<B: TestBroker> Ground<B> {
    /// On a server that other tests use too; `None` if there is none here.
    pub fn shared() -> Option<Self> {
        let url = env::var(B::KIND.variable())
            .ok()
            .or_else(|| shared_url(B::KIND))?;
        Some(Self::at(url, None))
    }

    /// On a server of its own, which may be killed; `None` if there is none here.
    pub fn private() -> Option<Self> {
        Self::with(Setup::default())
    }

    /// On a server of its own that is set up like this.
    pub fn with(setup: Setup) -> Option<Self> {
        let server = started(B::KIND, Server::start_with(B::KIND, setup))?;
        Some(Self::at(server.url().to_owned(), Some(server)))
    }

    fn at(url: String, server: Option<Server>) -> Self {
        Self {
            url,
            topics: Topics::new(format!("t{}", Uuid::new_v4().simple())).unwrap(),
            server,
            kind: PhantomData,
        }
    }

    /// The options of this test's brokers: its namespace, 4 partitions, 2 s to confirm.
    pub fn options(&self) -> BrokerOptions {
        BrokerOptions::new()
            .topics(self.topics.clone())
            .partitions(NonZeroU16::new(4).unwrap())
            .confirm_within(Duration::from_secs(2))
    }

    /// A broker with them.
    pub fn broker(&self) -> Arc<dyn Broker> {
        self.broker_with(self.options())
    }

    /// A broker with others.
    pub fn broker_with(&self, options: BrokerOptions) -> Arc<dyn Broker> {
        open(&self.url, options).unwrap()
    }

    /// The test's own server.
    pub fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("a private server")
    }
}

/// The server, unless it is not installed and need not be.
fn started(kind: Kind, server: Result<Server, StartError>) -> Option<Server> {
    match server {
        Ok(server) => Some(server),
        Err(error @ StartError::NotInstalled { .. }) => {
            assert!(env::var_os(REQUIRE_ALL).is_none(), "{error}");
            eprintln!("skipped: {}: {error}", kind.name());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// One server of each kind for all tests of this program, which ends with it.
fn shared_url(kind: Kind) -> Option<String> {
    static SERVERS: Mutex<BTreeMap<Kind, Option<Server>>> = Mutex::new(BTreeMap::new());
    let mut servers = SERVERS.lock().unwrap();
    let server = servers
        .entry(kind)
        .or_insert_with(|| started(kind, Server::start(kind)));
    server.as_ref().map(|server| server.url().to_owned())
}
