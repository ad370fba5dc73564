/// Declares a newtype for the id of an aggregate.
///
/// A type of its own keeps an order's id from being taken for a customer's. The newtype gets
/// `Debug`, `Display`, `FromStr`, `From`, equality, order, hash and serde (transparent), and sqlx's
/// `Type`, `Encode` and `Decode` on each database on which the inner type has them. The inner type
/// is `String`, `i64`, `Uuid` or the like.
///
/// ```
/// outbox_runtime::typed_id! {
///     /// What an order is known by.
///     pub struct OrderId(String);
/// }
///
/// let id = OrderId::from("order-7".to_owned());
/// assert_eq!(id.to_string(), "order-7");
/// assert_eq!("order-7".parse::<OrderId>().as_ref(), Ok(&id));
/// ```
#[macro_export]
macro_rules! typed_id {
    ($($(#[$meta:meta])* $visibility:vis struct $name:ident($inner:ty);)+) => {$(
        $(#[$meta])*
        #[derive(
            ::core::fmt::Debug,
            ::core::clone::Clone,
            ::core::cmp::PartialEq,
            ::core::cmp::Eq,
            ::core::cmp::PartialOrd,
            ::core::cmp::Ord,
            ::core::hash::Hash,
        )]
        $visibility struct $name($inner);

        impl $name {
            /// The value inside.
            #[allow(dead_code)]
            $visibility fn as_inner(&self) -> &$inner {
                &self.0
            }

            /// Takes the value out.
            #[allow(dead_code)]
            $visibility fn into_inner(self) -> $inner {
                self.0
            }
        }

        impl ::core::convert::From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::core::str::FromStr for $name {
            type Err = <$inner as ::core::str::FromStr>::Err;

            fn from_str(text: &str) -> ::core::result::Result<Self, Self::Err> {
                <$inner as ::core::str::FromStr>::from_str(text).map(Self)
            }
        }

        impl $crate::__private::serde::Serialize for $name {
            fn serialize<S: $crate::__private::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::__private::serde::Serialize::serialize(&self.0, serializer)
            }
        }

        impl<'de> $crate::__private::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::__private::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                <$inner as $crate::__private::serde::Deserialize<'de>>::deserialize(deserializer)
                    .map(Self)
            }
        }

        impl<DB: $crate::__private::sqlx::Database> $crate::__private::sqlx::Type<DB> for $name
        where
            $inner: $crate::__private::sqlx::Type<DB>,
        {
            fn type_info() -> DB::TypeInfo {
                <$inner as $crate::__private::sqlx::Type<DB>>::type_info()
            }

            fn compatible(ty: &DB::TypeInfo) -> bool {
                <$inner as $crate::__private::sqlx::Type<DB>>::compatible(ty)
            }
        }

        impl<'q, DB: $crate::__private::sqlx::Database> $crate::__private::sqlx::Encode<'q, DB>
            for $name
        where
            $inner: $crate::__private::sqlx::Encode<'q, DB>,
        {
            fn encode_by_ref(
                &self,
                buffer: &mut <DB as $crate::__private::sqlx::Database>::ArgumentBuffer,
            ) -> ::core::result::Result<
                $crate::__private::sqlx::encode::IsNull,
                $crate::__private::sqlx::error::BoxDynError,
            > {
                <$inner as $crate::__private::sqlx::Encode<'q, DB>>::encode_by_ref(&self.0, buffer)
            }
        }

        impl<'r, DB: $crate::__private::sqlx::Database> $crate::__private::sqlx::Decode<'r, DB>
            for $name
        where
            $inner: $crate::__private::sqlx::Decode<'r, DB>,
        {
            fn decode(
                value: <DB as $crate::__private::sqlx::Database>::ValueRef<'r>,
            ) -> ::core::result::Result<Self, $crate::__private::sqlx::error::BoxDynError> {
                <$inner as $crate::__private::sqlx::Decode<'r, DB>>::decode(value).map(Self)
            }
        }
    )+};
}
