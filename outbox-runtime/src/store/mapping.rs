use sqlx::error::BoxDynError;

use super::Values;

/// Which table and columns an aggregate lives in: built once by the expansion of `#[aggregate]`.
///
/// All identifiers are quoted, so they keep their case and may be words of SQL.
#[derive(Debug)]
pub struct TableMapping {
    schema: Option<String>,
    table: String,
    id: String,
    version: String,
    others: Vec<String>,
}

impl TableMapping {
    /// A table, `"orders"` or `"shop.orders"`, with its id and version columns.
    pub fn new(table: &str, id: &str, version: &str) -> Self {
        let (schema, table) = match table.split_once('.') {
            Some((schema, table)) => (Some(schema.to_owned()), table.to_owned()),
            None => (None, table.to_owned()),
        };
        Self {
            schema,
            table,
            id: id.to_owned(),
            version: version.to_owned(),
            others: Vec::new(),
        }
    }

    /// Adds a column.
    #[must_use]
    pub fn column(mut self, name: &str) -> Self {
        self.others.push(name.to_owned());
        self
    }

    /// Adds the columns of an embedded value object.
    #[must_use]
    pub fn embedded<V: ValueObject>(mut self, prefix: &str) -> Self {
        self.others
            .extend(V::COLUMNS.iter().map(|column| format!("{prefix}{column}")));
        self
    }

    /// The schema, if the table was named with one.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The table's name without its schema.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The id's column.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The version's column.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All columns but id and version, in the order of the fields.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// All columns: id, version and the others.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        [self.id(), self.version()]
            .into_iter()
            .chain(self.others.iter().map(String::as_str))
    }

    /// The table for use in SQL, quoted and with its schema.
    pub(crate) fn quoted_table(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quote(schema), quote(&self.table)),
            None => quote(&self.table),
        }
    }
}

/// An identifier as SQL quotes it.
pub(crate) fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// A value object that is stored in columns of the aggregate that embeds it.
///
/// `#[value_object]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be embedded in an aggregate's table",
    label = "not a value object",
    note = "annotate the type with `#[value_object]`, or store the field as JSON: `#[aggregate(json)]`"
)]
pub trait ValueObject: Sized {
    /// The names of its columns, without the prefix of the embedding field.
    const COLUMNS: &'static [&'static str];
}

/// How a value object goes to and comes from one database.
pub trait ValueObjectRow<DB: Values>: ValueObject {
    /// Adds its columns in the order of [`COLUMNS`](ValueObject::COLUMNS).
    ///
    /// # Errors
    /// What a field's `Encode` says.
    fn bind(&self, arguments: &mut DB::Arguments) -> Result<(), BoxDynError>;

    /// Reads its columns from `first` on.
    ///
    /// # Errors
    /// What a field's `Decode` says.
    fn read(row: &DB::Row, first: usize) -> Result<Self, sqlx::Error>;
}
