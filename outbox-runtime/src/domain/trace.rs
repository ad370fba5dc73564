//! What a W3C trace context looks like.
//!
//! The rules are those of [Trace Context](https://www.w3.org/TR/trace-context/), sections 3.2
//! (`traceparent`) and 3.3 (`tracestate`).

use super::envelope::Metadata;

/// The longest `traceparent`, in bytes: version 00 has 55, and later ones may append.
const MAX_TRACEPARENT_BYTES: usize = 255;
/// The length of version 00, and of the part that all versions share.
const TRACEPARENT_BYTES: usize = 55;
/// The longest `tracestate`, in bytes. At least 512 have to be carried.
const MAX_TRACESTATE_BYTES: usize = 4096;
/// The most vendors in a `tracestate`.
const MAX_MEMBERS: usize = 32;
/// The longest key or value of a vendor, in bytes.
const MAX_MEMBER_BYTES: usize = 256;

/// A trace context that keeps the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceContext<'a> {
    pub(crate) traceparent: &'a str,
    pub(crate) tracestate: Option<&'a str>,
}

impl<'a> TraceContext<'a> {
    /// The message's. A malformed `traceparent` counts as none, and takes the `tracestate` along.
    pub(crate) fn of(metadata: &'a Metadata) -> Option<Self> {
        let traceparent = metadata.traceparent.as_deref();
        let tracestate = metadata.tracestate.as_deref();
        Some(Self {
            traceparent: traceparent.filter(|text| is_traceparent(text))?,
            tracestate: tracestate.filter(|text| is_tracestate(text)),
        })
    }
}

/// Whether the text is a `traceparent`, of version 00 or a later one that begins like it.
pub(crate) fn is_traceparent(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(shared), true) = (
        bytes.get(..TRACEPARENT_BYTES),
        bytes.len() <= MAX_TRACEPARENT_BYTES && bytes.is_ascii(),
    ) else {
        return false;
    };
    let more = bytes.get(TRACEPARENT_BYTES);
    let mut fields = shared.split(|&byte| byte == b'-');
    let mut field = |length| {
        let field = fields.next()?;
        let is_hex = field.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (field.len() == length && is_hex).then_some(field)
    };
    let (Some(version), Some(trace_id), Some(parent_id), Some(_)) =
        (field(2), field(32), field(16), field(2))
    else {
        return false;
    };
    let is_zero = |id: &[u8]| id.iter().all(|&digit| digit == b'0');
    let is_as_long_as_it_says = match version {
        b"ff" => false,
        b"00" => more.is_none(),
        _ => more.is_none_or(|&byte| byte == b'-'),
    };
    is_as_long_as_it_says && !is_zero(trace_id) && !is_zero(parent_id) && !has_controls(text)
}

/// Whether the text is a `tracestate`.
pub(crate) fn is_tracestate(text: &str) -> bool {
    let mut members = 0;
    !text.is_empty()
        && text.len() <= MAX_TRACESTATE_BYTES
        && text.split(',').all(|member| {
            let member = member.trim_matches([' ', '\t']);
            members += usize::from(!member.is_empty());
            member.is_empty() || is_member(member)
        })
        && (1..=MAX_MEMBERS).contains(&members)
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else {
        return false;
    };
    let in_key = |c: char| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '*' | '/' | '@')
    };
    let in_value = |c: char| matches!(c, ' '..='~') && !matches!(c, ',' | '=');
    let fits = |text: &str| (1..=MAX_MEMBER_BYTES).contains(&text.len());
    fits(key) && fits(value) && key.chars().all(in_key) && value.chars().all(in_value)
}

fn has_controls(text: &str) -> bool {
    text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_taken_as_the_specification_says() {
        assert!(is_traceparent(VALID));
        let later = VALID.replacen("00", "cc", 1);
        for valid in [
            &later,
            &format!("{later}-"),
            &format!("{later}-what-the-future"),
        ] {
            assert!(is_traceparent(valid), "{valid}");
        }
        for malformed in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-1",
            &format!("{VALID}-"),
            &format!("{VALID}0"),
            &format!("{later}0"),
            &format!("{later}-\n"),
            &format!("{later}-{}", "0".repeat(256)),
        ] {
            assert!(!is_traceparent(malformed), "{malformed}");
        }
    }

    #[test]
    fn a_tracestate_is_a_short_list_of_vendors() {
        let many = |members: usize| vec!["a=1"; members].join(",");
        for valid in [
            "vendor=1",
            "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE",
            "fw529a3039@dt=FfffAQAAAAEAAAAA,,",
            &many(32),
        ] {
            assert!(is_tracestate(valid), "{valid}");
        }
        for malformed in [
            "",
            ",",
            "vendor",
            "=1",
            "vendor=",
            "Vendor=1",
            "a=b=c",
            "a=\u{7}",
            "a=é",
            &many(33),
            &format!("a={}", "b".repeat(257)),
        ] {
            assert!(!is_tracestate(malformed), "{malformed}");
        }
    }
}
