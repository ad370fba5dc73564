use std::fs;
use std::time::Duration;

use lapin::tcp::OwnedTLSConfig;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use percent_encoding::percent_decode_str;

use crate::broker::options::Credentials;
use crate::broker::{BrokerOptions, ConfigError};

const HEARTBEAT: u16 = 10;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const LONGEST_CONNECT: u64 = 10 * 60 * 1000;

/// Where the servers are and how to sign in.
///
/// It has no `Debug`, so that no password is ever shown.
pub(super) struct Server {
    scheme: AMQPScheme,
    hosts: Vec<(String, u16)>,
    vhost: String,
    credentials: Credentials,
    heartbeat: u16,
    /// How long one host may take to answer.
    pub(super) connect_within: Duration,
    root_certificate: Option<String>,
}

impl Server {
    /// Understands `amqp[s]://[user:password@]host[:port][,host..][/vhost][?heartbeat=..]`.
    ///
    /// The errors repeat nothing of the URL: any part may be that of a password that was not encoded.
    pub(super) fn new(url: &str, options: &BrokerOptions) -> Result<Self, ConfigError> {
        let (scheme, rest) = match url.split_once("://") {
            Some(("amqp", rest)) => (AMQPScheme::AMQP, rest),
            Some(("amqps", rest)) => (AMQPScheme::AMQPS, rest),
            _ => return Err(refused()),
        };
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, vhost) = rest.split_once('/').unwrap_or((rest, ""));
        let (user_info, hosts) = match authority.rsplit_once('@') {
            Some((user_info, hosts)) => (Some(user_info), hosts),
            None => (None, authority),
        };
        let port = scheme.default_port();
        let hosts = hosts.split(',').map(|text| host(text, port));
        let mut server = Self {
            scheme,
            hosts: hosts.collect::<Option<_>>().ok_or_else(refused)?,
            vhost: vhost_of(vhost)?,
            credentials: match &options.credentials {
                Some(credentials) => credentials.clone(),
                None => credentials(user_info)?,
            },
            heartbeat: HEARTBEAT,
            connect_within: CONNECT_WITHIN,
            root_certificate: None,
        };
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            server.set(parameter)?;
        }
        if let Some(path) = &options.root_certificate {
            let pem = fs::read_to_string(path).map_err(|error| {
                ConfigError::new(format!(
                    "the root certificate {} can't be read: {error}",
                    path.display()
                ))
            })?;
            server.root_certificate = Some(pem);
        }
        Ok(server)
    }

    fn set(&mut self, parameter: &str) -> Result<(), ConfigError> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "heartbeat" => {
                self.heartbeat = value.parse().ok().filter(|&value| value > 0).ok_or_else(
                    || {
                        ConfigError::new(
                            "heartbeat in RabbitMQ's URL is a number of seconds from 1 to 65535",
                        )
                    },
                )?;
            }
            "connection_timeout" => {
                let limit = value
                    .parse()
                    .ok()
                    .filter(|value| (1..=LONGEST_CONNECT).contains(value));
                self.connect_within = limit.map(Duration::from_millis).ok_or_else(|| {
                    ConfigError::new(format!(
                        "connection_timeout in RabbitMQ's URL is a number of milliseconds from 1 to \
                         {LONGEST_CONNECT}"
                    ))
                })?;
            }
            _ => {
                // Its name is not repeated: it may be part of a password with a question mark in it.
                return Err(ConfigError::new(
                    "RabbitMQ's URL has a parameter that there is not; there are heartbeat (seconds) \
                     and connection_timeout (milliseconds); a question mark in user or password is \
                     written %3F",
                ));
            }
        }
        Ok(())
    }

    /// One address each, in the order in which they are tried.
    pub(super) fn addresses(&self) -> impl Iterator<Item = AMQPUri> {
        self.hosts.iter().map(|(host, port)| AMQPUri {
            scheme: self.scheme.clone(),
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: self.credentials.user.clone(),
                    password: self.credentials.password.clone(),
                },
                host: host.clone(),
                port: *port,
            },
            vhost: self.vhost.clone(),
            query: AMQPQueryString {
                heartbeat: Some(self.heartbeat),
                ..AMQPQueryString::default()
            },
        })
    }

    /// Whom to trust besides the well-known authorities.
    pub(super) fn tls(&self) -> OwnedTLSConfig {
        OwnedTLSConfig {
            identity: None,
            cert_chain: self.root_certificate.clone(),
        }
    }
}

/// `host`, `host:port` or `[address]:port`.
fn host(text: &str, default_port: u16) -> Option<(String, u16)> {
    let text = text.trim();
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (
                address,
                port.strip_prefix(':').or(port.is_empty().then_some(""))?,
            )
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let is_name = !name.is_empty() && !name.contains(['#', '@', '[', ']', ' ']);
    let port = match port {
        "" => Some(default_port),
        port => port.parse().ok(),
    };
    Some((name.to_owned(), port.filter(|_| is_name)?))
}

/// The virtual host, whose slashes are written `%2f`; without one, or with an empty one, `/`.
///
/// An `@` in it belongs to a password with a slash, which would be sent to another host and logged.
fn vhost_of(text: &str) -> Result<String, ConfigError> {
    match decoded(text) {
        Some(vhost) if vhost.is_empty() => Ok("/".to_owned()),
        Some(vhost) if vhost.len() <= 255 && !text.contains(['/', '#', '@']) => Ok(vhost),
        _ => Err(ConfigError::new(
            "the virtual host in RabbitMQ's URL is no UTF-8 of 1 to 255 bytes; percent-encode its \
             slashes (%2f) and other special characters, and those of user and password",
        )),
    }
}

fn credentials(user_info: Option<&str>) -> Result<Credentials, ConfigError> {
    // What RabbitMQ has when it is new; it lets it in from its own machine alone.
    let (user, password) = user_info
        .map(|text| text.split_once(':').unwrap_or((text, "")))
        .unwrap_or(("guest", "guest"));
    Credentials::decode(user, password).ok_or_else(|| {
        ConfigError::new(
            "user or password in RabbitMQ's URL is no UTF-8; percent-encode special characters",
        )
    })
}

fn decoded(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// The URL is not repeated: it may hold a password.
fn refused() -> ConfigError {
    ConfigError::new(
        "the URL of RabbitMQ is not understood; write \
         amqp://[user:password@]host[:port][/vhost][?heartbeat=10], amqps:// for TLS, and the hosts \
         of a cluster with commas between",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_address(url: &str) -> AMQPUri {
        let server = Server::new(url, &BrokerOptions::new()).unwrap();
        let mut addresses: Vec<_> = server.addresses().collect();
        assert_eq!(addresses.len(), 1);
        addresses.remove(0)
    }

    #[test]
    fn a_url_says_where_and_as_whom() {
        let uri = only_address("amqp://localhost");
        assert_eq!(
            (uri.authority.host.as_str(), uri.authority.port),
            ("localhost", 5672)
        );
        assert_eq!(uri.authority.userinfo.username, "guest");
        assert_eq!(uri.vhost, "/");
        assert_eq!(uri.query.heartbeat, Some(10));
        let uri = only_address("amqps://us%3Aer:p%40ss@[::1]/a%2fb?heartbeat=30");
        assert_eq!(
            (uri.authority.host.as_str(), uri.authority.port),
            ("::1", 5671)
        );
        assert_eq!(uri.authority.userinfo.username, "us:er");
        assert_eq!(uri.authority.userinfo.password, "p@ss");
        assert_eq!(uri.vhost, "a/b");
        assert_eq!(uri.query.heartbeat, Some(30));
        for url in ["amqp://h/", "amqp://h/%2f", "amqp://h/%2F", "amqp://h"] {
            assert_eq!(only_address(url).vhost, "/", "{url}");
        }
    }

    #[test]
    fn the_hosts_of_a_cluster_are_tried_in_order() {
        let server = Server::new("amqp://u:p@a,b:1,[::2]:3/v", &BrokerOptions::new()).unwrap();
        let hosts: Vec<_> = server
            .addresses()
            .map(|uri| format!("{} {}", uri.authority.host, uri.authority.port))
            .collect();
        assert_eq!(hosts, ["a 5672", "b 1", "::2 3"]);
    }

    #[test]
    fn the_options_credentials_go_first() {
        let options = BrokerOptions::new().credentials("other", "word");
        let server = Server::new("amqp://user:secret@host", &options).unwrap();
        let uri = server.addresses().next().unwrap();
        assert_eq!(uri.authority.userinfo.username, "other");
        assert_eq!(uri.authority.userinfo.password, "word");
    }

    #[test]
    fn what_is_not_understood_is_refused_without_being_told() {
        for url in [
            "",
            "amqp://",
            "host:5672",
            "http://u:secret@host",
            "amqp://u:secret@",
            "amqp://u:secret@host:port",
            "amqp://u:secret@host,,host",
            "amqp://u:secret@[::1",
            "amqp://u:secret@[::1]5672",
            "amqp://u:secret@host/a/b",
            "amqp://u:%ffsecret@host",
            "amqp://u:secret@host/%ff",
            "amqp://u:secret@host?heartbeat=0",
            "amqp://u:secret@host?connection_timeout=-1",
            "amqp://u:secret@host?heartbeat=5&what=secret",
            "amqp://u:secret@host?secret",
            "amqp://u:12?secret@host/",
            "amqp://u:12?heartbeat=secret@host/",
            "amqp://u:12?a=5&secret@host/",
            "amqp://u:12/secret@host/",
            "amqp://u:12/secret@host",
        ] {
            let Err(error) = Server::new(url, &BrokerOptions::new()) else {
                panic!("{url} is taken");
            };
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let options = BrokerOptions::new().root_certificate("/nowhere/ca.pem");
        let error = Server::new("amqps://host", &options).err().unwrap();
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }
}
