use std::fmt;

use ::redis::ProtocolVersion;

use crate::broker::ConfigError;
use crate::broker::options::Credentials;

const PORT: u16 = 6379;

/// What a URL says: where the server is, and as whom to sign in.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    pub(super) database: u32,
    pub(super) protocol: ProtocolVersion,
    /// With an empty user, the password alone is sent.
    pub(super) credentials: Option<Credentials>,
}

impl Address {
    /// Reads `redis[s]://[user:password@]host[:port][/database][?protocol=resp2|resp3]`.
    ///
    /// No error repeats a part of the URL: what is misplaced in it may be a password.
    pub(super) fn parse(url: &str) -> Result<Self, ConfigError> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let is_tls = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return Err(refused("it begins with neither redis:// nor rediss://")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if rest.contains('#') {
            return Err(refused("it has a fragment (`#`)"));
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (user_info, place) = match authority.rsplit_once('@') {
            Some((user_info, place)) => (Some(user_info), place),
            None => (None, authority),
        };
        let (host, port) = host_and_port(place)?;
        Ok(Self {
            host,
            port,
            is_tls,
            database: database(path)?,
            protocol: protocol(query)?,
            credentials: user_info.map(credentials).transpose()?,
        })
    }
}

/// The place alone, without who signs in.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

fn refused(why: &str) -> ConfigError {
    ConfigError::new(format!(
        "the URL of Redis is not understood: {why}; write \
         redis://[user:password@]host[:port][/database][?protocol=resp3], with rediss:// for TLS"
    ))
}

fn host_and_port(place: &str) -> Result<(String, u16), ConfigError> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => rest
            .split_once(']')
            .ok_or_else(|| refused("the address in brackets does not end"))?,
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    if host.is_empty() {
        return Err(refused("it names no host"));
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => PORT,
        Some(port) => port
            .parse()
            .ok()
            .filter(|&port| port > 0)
            .ok_or_else(|| refused("its port is no number from 1 to 65535"))?,
        None => return Err(refused("something stands between host and port")),
    };
    Ok((host.to_owned(), port))
}

fn database(path: &str) -> Result<u32, ConfigError> {
    match path.strip_prefix('/').unwrap_or(path) {
        "" => Ok(0),
        number => number
            .parse()
            .map_err(|_| refused("its path is not the number of a database")),
    }
}

fn protocol(query: &str) -> Result<ProtocolVersion, ConfigError> {
    match query {
        "" | "protocol=resp2" => Ok(ProtocolVersion::RESP2),
        "protocol=resp3" => Ok(ProtocolVersion::RESP3),
        _ => Err(refused(
            "the only parameter is protocol, which is resp2 or resp3",
        )),
    }
}

fn credentials(user_info: &str) -> Result<Credentials, ConfigError> {
    let Some((user, password)) = user_info.split_once(':') else {
        return Err(refused("it names a user without a password"));
    };
    Credentials::decode(user, password)
        .ok_or_else(|| refused("user or password is not UTF-8 when percent-decoded"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_read() {
        let address = Address::parse("rediss://us%40r:p%2F%3A:w@[::1]:7000/3?protocol=resp3");
        let address = address.unwrap();
        assert_eq!(address.to_string(), "[::1]:7000");
        assert!(address.is_tls);
        assert_eq!(address.database, 3);
        assert_eq!(address.protocol, ProtocolVersion::RESP3);
        let credentials = address.credentials.unwrap();
        assert_eq!(
            (credentials.user.as_str(), credentials.password.as_str()),
            ("us@r", "p/::w")
        );
    }

    #[test]
    fn what_is_left_out_has_defaults() {
        let address = Address::parse("redis://cache/").unwrap();
        assert_eq!(address.to_string(), "cache:6379");
        assert_eq!(address.database, 0);
        assert!(address.credentials.is_none());
        let password = Address::parse("redis://:secret@h").unwrap().credentials;
        assert_eq!(password.unwrap().user, "");
    }

    #[test]
    fn what_is_not_understood_is_refused_without_repeating_it() {
        for url in [
            "",
            "redis:/secret",
            "secret://h",
            "redis://",
            "redis://u:secret@",
            "redis://u:se/cret@h",
            "redis://u:se?cret@h",
            "redis://u:se#cret@h",
            "redis://secret@h",
            "redis://h:secret",
            "redis://h:0",
            "redis://[::1secret",
            "redis://[::1]secret",
            "redis://h/secret",
            "redis://h?password=secret",
            "redis://:%ff@h",
        ] {
            let Err(error) = Address::parse(url) else {
                panic!("{url} was understood");
            };
            let error = error.to_string();
            assert!(!error.contains("cret"), "{error}");
            assert!(error.contains("redis://[user:password@]host"), "{error}");
        }
    }
}
