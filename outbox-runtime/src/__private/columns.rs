use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sqlx::error::BoxDynError;
use sqlx::{Database, Decode, Encode, Type};

use crate::store::{ValueObject, ValueObjectRow, Values};

/// What a field without a mark must be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a column on `{DB}`",
    label = "sqlx can't store this there",
    note = "derive `sqlx::Type` for it, or mark the field `json`, `embed` or `skip`"
)]
pub trait ColumnValue<DB: Database>:
    Type<DB> + for<'q> Encode<'q, DB> + for<'r> Decode<'r, DB>
{
}

#[diagnostic::do_not_recommend]
impl<DB: Database, T> ColumnValue<DB> for T where
    T: Type<DB> + for<'q> Encode<'q, DB> + for<'r> Decode<'r, DB>
{
}

/// What a field marked `json` must be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a column of JSON",
    label = "serde can't write and read this",
    note = "derive `Serialize` and `Deserialize` for it"
)]
pub trait JsonValue: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> JsonValue for T {}

/// Adds a field as JSON.
///
/// # Errors
/// What serde or sqlx says.
pub fn add_json<DB: Values, T: JsonValue>(
    arguments: &mut DB::Arguments,
    value: &T,
) -> Result<(), BoxDynError> {
    DB::add_json(arguments, serde_json::value::to_raw_value(value)?)
}

/// Takes the columns of a row one after another.
pub struct Columns<'r, DB: Values> {
    row: &'r DB::Row,
    next: usize,
}

impl<'r, DB: Values> Columns<'r, DB> {
    /// The columns from the one at `next` on, counted from 0.
    pub fn starting_at(row: &'r DB::Row, next: usize) -> Self {
        Self { row, next }
    }

    /// A value that sqlx decodes.
    ///
    /// # Errors
    /// What its `Decode` says.
    pub fn value<T: Decode<'r, DB> + Type<DB>>(&mut self) -> Result<T, sqlx::Error> {
        let index = self.take(1);
        DB::get(self.row, index)
    }

    /// A value from JSON.
    ///
    /// # Errors
    /// What serde or sqlx says.
    pub fn json<T: JsonValue>(&mut self) -> Result<T, sqlx::Error> {
        let index = self.take(1);
        let json: Box<RawValue> = DB::get_json(self.row, index)?;
        serde_json::from_str(json.get()).map_err(|source| sqlx::Error::ColumnDecode {
            index: index.to_string(),
            source: source.into(),
        })
    }

    /// An embedded value object.
    ///
    /// # Errors
    /// What a field's `Decode` says.
    pub fn embedded<V: ValueObjectRow<DB>>(&mut self) -> Result<V, sqlx::Error> {
        let first = self.take(<V as ValueObject>::COLUMNS.len());
        V::read(self.row, first)
    }

    /// The aggregate's version.
    ///
    /// # Errors
    /// What sqlx says.
    pub fn version(&mut self) -> Result<i64, sqlx::Error> {
        let index = self.take(1);
        DB::get_i64(self.row, index)
    }

    fn take(&mut self, count: usize) -> usize {
        let first = self.next;
        self.next += count;
        first
    }
}
