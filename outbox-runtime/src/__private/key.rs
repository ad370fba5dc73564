use std::fmt::Display;

use crate::domain::KeyWriter;

/// A value of a key template: `KeyValue(&value).part()` tells an `Option` from everything else.
///
/// For an `Option` the inherent method is found; for other types the lookup goes on to the trait
/// [`PresentKeyValue`]. Both then meet in [`write_key`], whose bound names the type that has no
/// `Display`.
pub struct KeyValue<'a, T: ?Sized>(pub &'a T);

impl<'a, T> KeyValue<'a, Option<T>> {
    /// The value, if there is one.
    pub fn part(self) -> MaybePart<'a, T> {
        MaybePart(self.0.as_ref())
    }
}

/// Values that are always there.
pub trait PresentKeyValue<'a> {
    /// The type of the value.
    type Value: ?Sized;

    /// The value.
    fn part(self) -> PresentPart<'a, Self::Value>;
}

impl<'a, T: ?Sized> PresentKeyValue<'a> for KeyValue<'a, T> {
    type Value = T;

    fn part(self) -> PresentPart<'a, T> {
        PresentPart(self.0)
    }
}

/// A value that is always there.
pub struct PresentPart<'a, T: ?Sized>(&'a T);

/// A value that may be missing.
pub struct MaybePart<'a, T>(Option<&'a T>);

/// What a placeholder must stand for.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't stand in a key",
    label = "a placeholder of this key stands for `{Self}`, which has no `Display`",
    note = "name one of its fields, such as `{{address.city}}`, or implement `std::fmt::Display` so that equal values look equal"
)]
pub trait KeyField: Display {}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> KeyField for T {}

/// What can be written into a key.
pub trait KeyPart {
    /// Writes it.
    fn write(self, key: &mut KeyWriter);
}

impl<T: KeyField + ?Sized> KeyPart for PresentPart<'_, T> {
    fn write(self, key: &mut KeyWriter) {
        key.value(self.0);
    }
}

impl<T: KeyField> KeyPart for MaybePart<'_, T> {
    fn write(self, key: &mut KeyWriter) {
        key.optional(self.0);
    }
}

/// Writes a value into a key.
pub fn write_key(key: &mut KeyWriter, part: impl KeyPart) {
    part.write(key);
}
