use std::time::Duration;

use ::redis::{ErrorKind, RedisError};

/// The longest text of the server's that is passed on, in characters.
const LONGEST: usize = 200;

/// What went wrong with the server, in words that hold no user, no password and no content.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub(super) struct Failure {
    text: String,
    is_of_connection: bool,
}

impl Failure {
    /// The server's answer to one entry, such as `OOM command not allowed when..`.
    pub(super) fn of_answer(answer: &str) -> Self {
        let answer = answer.trim_start_matches('-').trim_start();
        let (code, detail) = answer.split_once(' ').unwrap_or((answer, ""));
        Self::of_server(code, detail)
    }

    /// An answer that makes no sense.
    pub(super) fn unexpected() -> Self {
        Self {
            text: "Redis gave an answer of an unknown form; is it another kind of server, or a \
                   proxy?"
                .to_owned(),
            is_of_connection: true,
        }
    }

    /// No answer within the limit.
    pub(super) fn late(limit: Duration) -> Self {
        Self {
            text: format!("Redis did not answer within {limit:?}"),
            is_of_connection: true,
        }
    }

    /// No connection to the address, and why.
    pub(super) fn unreachable(address: &impl std::fmt::Display, why: &std::io::Error) -> Self {
        Self {
            text: format!("no connection to Redis at {address}: {why}"),
            is_of_connection: true,
        }
    }

    /// Nothing to do with the connection.
    pub(super) const fn new(text: String) -> Self {
        Self {
            text,
            is_of_connection: false,
        }
    }

    /// The same, of this stream.
    pub(super) fn at(self, stream: &str) -> Self {
        Self {
            text: format!("stream `{stream}`: {}", self.text),
            ..self
        }
    }

    /// Whether another connection may succeed where this one failed.
    pub(super) const fn is_of_connection(&self) -> bool {
        self.is_of_connection
    }

    fn of_server(code: &str, detail: &str) -> Self {
        let remedy = match code {
            "FENCED" => "",
            "OOM" => {
                "; its memory is full: let it keep less (RedisBroker::keep) or raise maxmemory"
            }
            "READONLY" => {
                "; it is a replica now: the primary is asked as soon as the address leads there"
            }
            "NOAUTH" | "WRONGPASS" => {
                "; set user and password in the URL or by BrokerOptions::credentials"
            }
            // Some versions say so of a command in a script.
            "ERR" if detail.starts_with("The user executing the script") => {
                return Self::of_server("NOPERM", "the user lacks a permission in a script");
            }
            "NOPERM" => "; the book's chapter on Redis lists the commands and keys that are needed",
            "NOGROUP" => {
                "; it is made anew unless BrokerOptions::declare forbids it: XGROUP CREATE <stream> \
                 <group> 0 MKSTREAM"
            }
            "WRONGTYPE" => "; something else has the stream's name",
            _ => "",
        };
        Self {
            text: format!("{code}: {}{remedy}", without_secrets(code, detail)),
            is_of_connection: matches!(code, "READONLY" | "MASTERDOWN" | "NOAUTH" | "LOADING"),
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) => {
                let detail = error.detail().unwrap_or_default();
                match detail.contains("WRONGPASS") || detail.is_empty() {
                    true => Self::of_server("WRONGPASS", "user or password is wrong"),
                    false => Self::of_answer(detail),
                }
            }
            (_, Some(code)) => Self::of_server(code, error.detail().unwrap_or_default()),
            _ => Self {
                text: format!("the connection to Redis broke: {error}"),
                is_of_connection: true,
            },
        }
    }
}

/// The server's words without what follows some of them: a user's name, arguments, the script.
fn without_secrets(code: &str, detail: &str) -> String {
    let detail = match code {
        "NOPERM" => detail
            .find("has no permissions")
            .or_else(|| detail.find("No permissions"))
            .and_then(|at| detail.get(at..))
            .unwrap_or("the user lacks a permission"),
        _ => detail,
    };
    let end = [", with args", " script: ", ", on @user_script"]
        .iter()
        .filter_map(|mark| detail.find(mark))
        .min();
    let said = detail.get(..end.unwrap_or(detail.len()));
    let said = said.unwrap_or_default().trim_end_matches('.');
    said.chars()
        .filter(|character| !character.is_control())
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_users_nor_arguments_are_passed_on() {
        for (answer, expected) in [
            (
                "NOPERM User alice has no permissions to run the 'xadd' command",
                "NOPERM: has no permissions to run the 'xadd' command; ",
            ),
            (
                "ERR unknown command 'EVALSHA', with args beginning with: 'secret'",
                "ERR: unknown command 'EVALSHA'",
            ),
            (
                "-OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:3.",
                "OOM: command not allowed when used memory > 'maxmemory'; its memory is full",
            ),
        ] {
            let text = Failure::of_answer(answer).to_string();
            assert!(text.starts_with(expected), "{text}");
            assert!(
                !text.contains("alice") && !text.contains("secret"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_server_that_became_a_replica_is_left() {
        assert!(Failure::of_answer("READONLY You can't write").is_of_connection());
        assert!(!Failure::of_answer("OOM command not allowed").is_of_connection());
    }
}
