/// The objects that migrations make; SQL files write their names plainly.
const OBJECTS: [&str; 32] = [
    "outbox_message",
    "outbox_message_business_key",
    "outbox_shard",
    "outbox_relay",
    "outbox_journal",
    "outbox_migration",
    "outbox_parked",
    "outbox_parked_lane",
    "outbox_parked_due",
    "outbox_parked_attempt",
    "outbox_parked_attempt_of",
    "outbox_scheduled",
    "outbox_scheduled_business_key",
    "outbox_scheduled_due",
    "outbox_cleaner",
    "outbox_message_archive",
    "outbox_journal_archive",
    "inbox_message_archive",
    "inbox_message_processed_at",
    "inbox_message",
    "inbox_member",
    "inbox_partition",
    "inbox_parked",
    "inbox_parked_lane",
    "inbox_parked_passed",
    "inbox_parked_attempt",
    "inbox_parked_attempt_parked",
    "outbox_discarded",
    "outbox_discarded_archive",
    "outbox_operator_note",
    "outbox_operator_note_message",
    "outbox_operator_note_archive",
];

/// Objects that live in their table's schema and can't be named with one when they are made.
const INDEXES: [&str; 11] = [
    "inbox_message_processed_at",
    "outbox_message_business_key",
    "outbox_parked_lane",
    "outbox_parked_due",
    "outbox_parked_attempt_of",
    "outbox_scheduled_business_key",
    "outbox_scheduled_due",
    "inbox_parked_lane",
    "inbox_parked_passed",
    "inbox_parked_attempt_parked",
    "outbox_operator_note_message",
];

/// The longest prefix, so that the longest name stays within PostgreSQL's 63 bytes.
const MAX_PREFIX_BYTES: usize = 30;
const MAX_SCHEMA_BYTES: usize = 63;

/// Where an outbox keeps its tables: an optional schema and a prefix, so that two services can
/// share one database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    schema: Option<String>,
    prefix: String,
}

/// A schema or a prefix can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} {value:?} can't be used: it has 1 to {limit} of the characters a-z, A-Z, 0-9 and _, \
     and does not begin with a digit"
)]
pub struct NamesError {
    what: &'static str,
    value: String,
    limit: usize,
}

impl Names {
    /// Checks and keeps the names.
    ///
    /// # Errors
    /// [`NamesError`] when one is not a plain identifier.
    pub fn new(schema: Option<&str>, prefix: &str) -> Result<Self, NamesError> {
        if let Some(schema) = schema {
            check("the schema", schema, MAX_SCHEMA_BYTES)?;
        }
        if !prefix.is_empty() {
            check("the prefix", prefix, MAX_PREFIX_BYTES)?;
        }
        Ok(Self {
            schema: schema.map(str::to_owned),
            prefix: prefix.to_owned(),
        })
    }

    /// The schema, if it is not the connection's own.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// What each table's name begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Fills the names into SQL: each object of ours gets its prefix, each table its schema too.
    ///
    /// Quoted strings, quoted identifiers and comments stay as they are.
    pub fn render(&self, sql: &str) -> String {
        if *self == Self::default() {
            return sql.to_owned();
        }
        let mut rendered = String::with_capacity(sql.len() + 256);
        for token in tokens(sql) {
            if OBJECTS.contains(&token) {
                if let Some(schema) = self.schema.as_deref().filter(|_| !INDEXES.contains(&token)) {
                    rendered.push_str(&format!("\"{schema}\"."));
                }
                rendered.push_str(&format!("\"{}{token}\"", self.prefix));
            } else {
                rendered.push_str(token);
            }
        }
        rendered
    }

    /// The name of an object with its schema, as `to_regclass` takes it.
    pub fn qualified(&self, object: &str) -> String {
        match &self.schema {
            Some(schema) => format!("\"{schema}\".\"{}{object}\"", self.prefix),
            None => format!("\"{}{object}\"", self.prefix),
        }
    }
}

fn check(what: &'static str, value: &str, limit: usize) -> Result<(), NamesError> {
    let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let starts_well = value.starts_with(|c: char| !c.is_ascii_digit());
    if plain && starts_well && value.len() <= limit {
        return Ok(());
    }
    Err(NamesError {
        what,
        value: value.to_owned(),
        limit,
    })
}

/// Splits SQL into words, quoted parts, comments and single other characters.
fn tokens(sql: &str) -> impl Iterator<Item = &str> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            '\'' | '"' => rest
                .chars()
                .skip(1)
                .position(|c| c == first)
                .map_or(rest.len(), |n| {
                    rest.char_indices()
                        .nth(n + 2)
                        .map_or(rest.len(), |(at, _)| at)
                }),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, tail) = rest.split_at(length);
        rest = tail;
        Some(token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_in_schema_and_prefix_and_leaves_text_alone() {
        let names = Names::new(Some("shop"), "b_").unwrap();
        assert_eq!(
            names.render("INSERT INTO outbox_message -- outbox_message\n VALUES ('outbox_message', \"outbox_message\")"),
            "INSERT INTO \"shop\".\"b_outbox_message\" -- outbox_message\n VALUES ('outbox_message', \"outbox_message\")",
        );
        assert_eq!(
            names.render(
                "CREATE INDEX outbox_message_business_key ON outbox_message (business_key)"
            ),
            "CREATE INDEX \"b_outbox_message_business_key\" ON \"shop\".\"b_outbox_message\" (business_key)",
        );
    }

    #[test]
    fn plain_names_change_nothing() {
        let sql = "SELECT 'é' FROM outbox_shard";
        assert_eq!(Names::default().render(sql), sql);
        let prefixed = Names::new(None, "x_").unwrap();
        assert_eq!(prefixed.render(sql), "SELECT 'é' FROM \"x_outbox_shard\"");
    }

    #[test]
    fn refuses_what_is_no_identifier() {
        for bad in ["a b", "1x", "a\"b", "", "é", &"x".repeat(64)] {
            assert!(Names::new(Some(bad), "").is_err(), "{bad}");
        }
        assert!(Names::new(None, "a;b").is_err());
    }
}
