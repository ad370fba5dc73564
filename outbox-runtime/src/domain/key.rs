use std::fmt::{self, Display, Write};

use sha2::{Digest, Sha256};

/// The longest key that is stored as it is, in bytes; a longer one ends in a hash.
pub const MAX_KEY_BYTES: usize = 200;

/// Fills a key template so that two different tuples of values never give the same key.
///
/// Values are percent-encoded ([RFC 3986], section 2.1) but for the unreserved characters
/// `A-Z a-z 0-9 - . _ ~`. The macros see to it that between two placeholders stands at least one
/// character that a value can't hold, so the key can be taken apart in one way only. A missing
/// value is `%-`, which no present value can be.
///
/// A key longer than [`MAX_KEY_BYTES`] keeps a readable prefix and ends in `#` and its SHA-256.
///
/// [RFC 3986]: https://www.rfc-editor.org/rfc/rfc3986
///
/// ```
/// use outbox_runtime::KeyWriter;
///
/// let mut key = KeyWriter::new();
/// key.value(&"a:b");
/// key.literal(":paid:v1");
/// assert_eq!(key.finish().as_deref(), Ok("a%3Ab:paid:v1"));
/// ```
#[derive(Debug, Default)]
pub struct KeyWriter {
    key: String,
    failed: bool,
}

/// A value of a key could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a value of a key can't be shown: its `Display` failed; mend it, keys must be exact")]
pub struct KeyError;

impl KeyWriter {
    /// An empty key.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            key: String::with_capacity(bytes),
            failed: false,
        }
    }

    /// Appends text of the template as it stands.
    pub fn literal(&mut self, text: &str) {
        self.key.push_str(text);
    }

    /// Appends a value, escaped.
    pub fn value(&mut self, value: &(impl Display + ?Sized)) {
        self.failed |= write!(Escape(&mut self.key), "{value}").is_err();
    }

    /// Appends a value that may be missing.
    pub fn optional(&mut self, value: Option<&(impl Display + ?Sized)>) {
        match value {
            Some(value) => self.value(value),
            None => self.key.push_str("%-"),
        }
    }

    /// The key, bounded.
    ///
    /// # Errors
    /// [`KeyError`] when the `Display` of a value failed, since a key cut short could be another's.
    pub fn finish(self) -> Result<String, KeyError> {
        if self.failed {
            return Err(KeyError);
        }
        if self.key.len() <= MAX_KEY_BYTES {
            return Ok(self.key);
        }
        let hash = Sha256::digest(self.key.as_bytes());
        let mut prefix = MAX_KEY_BYTES - 1 - 2 * hash.len();
        while !self.key.is_char_boundary(prefix) {
            prefix -= 1;
        }
        let prefix = self.key.get(..prefix).unwrap_or_default();
        Ok(format!("{prefix}#{hash:x}"))
    }
}

struct Escape<'a>(&'a mut String);

impl Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    self.0.push(char::from(byte));
                }
                _ => write!(self.0, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[&str]) -> String {
        let mut key = KeyWriter::new();
        for value in values {
            key.value(value);
            key.literal(":");
        }
        key.finish().unwrap()
    }

    #[test]
    fn different_tuples_give_different_keys() {
        assert_ne!(key(&["a:b", "c"]), key(&["a", "b:c"]));
        assert_ne!(key(&["a%3Ab"]), key(&["a:b"]));
        let mut missing = KeyWriter::new();
        missing.optional(None::<&str>);
        let mut dash = KeyWriter::new();
        dash.optional(Some("%-"));
        assert_ne!(missing.finish(), dash.finish());
    }

    #[test]
    fn long_keys_keep_a_prefix_and_stay_different() {
        let one = key(&[&"x".repeat(300), "1"]);
        let two = key(&[&"x".repeat(300), "2"]);
        assert_eq!(one.len(), MAX_KEY_BYTES);
        assert!(one.starts_with("xxx") && one != two);
        let wide = {
            let mut key = KeyWriter::new();
            key.literal(&"é".repeat(200));
            key.finish().unwrap()
        };
        assert!(wide.len() <= MAX_KEY_BYTES);
    }
}
