use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Postgres};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::Fixture;

/// A proxy in front of PostgreSQL that counts round trips: the frontend's Query and Sync messages,
/// each of which waits for one answer of the server (PostgreSQL's documentation, section 55.2).
///
/// A Sync without a statement is not counted: it is the pool's ping of a connection that came back.
pub struct RoundTrips {
    count: Arc<AtomicU64>,
    /// A pool of one connection through the proxy, without a ping before use.
    pub pool: PgPool,
}

impl RoundTrips {
    /// A proxy to the fixture's database.
    pub async fn count(fixture: &Fixture<Postgres>) -> Self {
        let options: PgConnectOptions = fixture.url.parse().expect("the fixture's URL");
        let server = (options.get_host().to_owned(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let count = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&count);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let upstream = TcpStream::connect(&server)
                    .await
                    .expect("the server answers");
                let (mut client_in, mut client_out) = client.into_split();
                let (mut server_in, mut server_out) = upstream.into_split();
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    let mut messages = Messages::default();
                    let mut buffer = vec![0; 64 * 1024];
                    while let Ok(n @ 1..) = client_in.read(&mut buffer).await {
                        counter.fetch_add(messages.feed(&buffer[..n]), Ordering::SeqCst);
                        if server_out.write_all(&buffer[..n]).await.is_err() {
                            break;
                        }
                    }
                });
                tokio::spawn(async move {
                    let _ = tokio::io::copy(&mut server_in, &mut client_out).await;
                });
            }
        });
        let options = options
            .host("127.0.0.1")
            .port(port)
            .ssl_mode(sqlx::postgres::PgSslMode::Disable);
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .test_before_acquire(false)
            .connect_with(options)
            .await
            .expect("the proxy answers");
        Self { count, pool }
    }

    /// The round trips since the last call.
    pub fn take(&self) -> u64 {
        self.count.swap(0, Ordering::SeqCst)
    }
}

/// Finds the messages in a stream of the frontend's bytes. The first has no type byte.
#[derive(Default)]
struct Messages {
    pending: Vec<u8>,
    started: bool,
    /// Part of a statement was sent since the last Sync.
    in_statement: bool,
}

impl Messages {
    /// How many Query and Sync messages are complete with these bytes.
    fn feed(&mut self, bytes: &[u8]) -> u64 {
        self.pending.extend_from_slice(bytes);
        let mut found = 0;
        loop {
            let tag = usize::from(self.started);
            let Some(length) = self.pending.get(tag..tag + 4) else {
                return found;
            };
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if self.pending.len() < tag + length {
                return found;
            }
            if self.started {
                let tag = self.pending[0];
                found += u64::from(tag == b'Q' || tag == b'S' && self.in_statement);
                self.in_statement = !matches!(tag, b'Q' | b'S');
            }
            self.started = true;
            self.pending.drain(..tag + length);
        }
    }
}
