//! The attributes of `outbox-runtime`, which re-exports them: depend on that crate alone.
//!
//! Each attribute lives in a folder of its own with the same files: `attr.rs` reads the attribute,
//! `validate.rs` refuses what does not fit and gives a model (`model.rs`), `expand.rs` writes the
//! code. All errors of an item are reported at once, on the tokens that are wrong.

use proc_macro::TokenStream;

mod aggregate;
mod attribute;
mod diagnostics;
mod domain_event;
mod fallback;
mod idempotent_handler;
mod item;
mod output;
mod runtime_path;
mod template;
mod value_object;

/// Makes a struct or an enum a domain event.
///
/// An event is a fact that other parts of the system are told of. Its name and version are a
/// contract with every consumer, so they are written down here and not derived from where the
/// type lives.
///
/// ```
/// use outbox_runtime::prelude::*;
///
/// /// The customer paid.
/// #[domain_event(version = 1, name = "order.paid", key = "{order_id}:paid")]
/// pub struct OrderPaid {
///     /// Which order.
///     pub order_id: String,
///     /// How much.
///     pub amount_cents: i64,
/// }
///
/// assert_eq!(OrderPaid::NAME, "order.paid");
/// assert_eq!(OrderPaid::VERSION, 1);
/// ```
///
/// | key | meaning | default |
/// |---|---|---|
/// | `version = 1` | the version of the fields' schema, from 1; count it up when they change | required |
/// | `name = "order.paid"` | the name on the wire | the type's name |
/// | `key = "{order_id}:paid"` | the business key: an event with the same one can't be stored again. Placeholders are the event's fields (`{customer.id}` for nested ones, `{0}` in a tuple struct); `{{` and `}}` are braces | none |
/// | `upcast_from = OrderPaidV1` | the type of the version before; payloads of it are read through `From<OrderPaidV1>` | none |
/// | `serde = custom` | you implement `Serialize` and `Deserialize` by hand | derived |
/// | `crate = "::outbox_runtime"` | where the runtime is, if the dependency was renamed | `::outbox_runtime` |
///
/// Serde's `Serialize` and `Deserialize` are derived, unless you derive them; write `#[derive]`
/// **below** `#[domain_event]`, which can't see it otherwise. The struct may carry any
/// `#[serde(...)]`.
///
/// # Older versions
/// Keep the old type, give the new one the next version and say how the one becomes the other.
/// A chain 1 to 2 to 3 is upcast step by step, and a gap in it does not compile.
///
/// ```
/// use outbox_runtime::prelude::*;
///
/// /// As it was told at first.
/// #[domain_event(version = 1, name = "order.placed")]
/// pub struct OrderPlacedV1 {
///     /// In cents.
///     pub total: i64,
/// }
///
/// /// As it is told now.
/// #[domain_event(version = 2, name = "order.placed", upcast_from = OrderPlacedV1)]
/// pub struct OrderPlaced {
///     /// In cents.
///     pub total: i64,
///     /// Three letters.
///     pub currency: String,
/// }
///
/// impl From<OrderPlacedV1> for OrderPlaced {
///     fn from(old: OrderPlacedV1) -> Self {
///         Self { total: old.total, currency: "EUR".to_owned() }
///     }
/// }
///
/// let placed = OrderPlaced::decode(1, r#"{"total":5}"#)?;
/// assert_eq!(placed.currency, "EUR");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[proc_macro_attribute]
pub fn domain_event(arguments: TokenStream, item: TokenStream) -> TokenStream {
    domain_event::domain_event(arguments.into(), item.into()).into()
}

/// Makes a struct an aggregate: a cluster of objects that changes and is stored as one.
///
/// ```
/// use outbox_runtime::prelude::*;
///
/// typed_id! { pub struct OrderId(String); }
///
/// /// The customer paid.
/// #[domain_event(version = 1)]
/// pub struct OrderPaid {
///     /// Which order.
///     pub order_id: OrderId,
/// }
///
/// /// An order.
/// #[aggregate(table = "orders", events(OrderPaid))]
/// pub struct Order {
///     id: OrderId,
///     paid: bool,
///     #[aggregate(json)]
///     lines: Vec<String>,
///     root: AggregateRoot,
/// }
///
/// impl Order {
///     /// Pays.
///     pub fn pay(&mut self) {
///         self.paid = true;
///         self.raise(OrderPaid { order_id: self.id.clone() });
///     }
/// }
/// ```
///
/// On the struct:
///
/// | key | meaning | default |
/// |---|---|---|
/// | `table = "orders"` | the table, with its schema if it needs one: `"shop.orders"` | the type's name in snake case |
/// | `type_name = "Order"` | the aggregate's type in envelopes | the type's name |
/// | `events(A, B)` | the events that it may raise; `self.raise(...)` of another does not compile | none |
/// | `persistence = custom` | you implement `CustomPersistence` instead | generated |
/// | `crate = "::outbox_runtime"` | where the runtime is, if the dependency was renamed | `::outbox_runtime` |
///
/// On a field, `#[aggregate(...)]` with:
///
/// | key | meaning |
/// |---|---|
/// | `id` | the identity; without the mark it is the field named `id` |
/// | `root` | version and raised events; without the mark it is the field of type `AggregateRoot`. Its column is `version` |
/// | `json` | one column of JSON |
/// | `embed` | a `#[value_object]`, a column for each of its fields; `prefix = "price_"` is the field's name and `_` by default |
/// | `skip` | not stored; `Default` when loaded |
/// | `column = "total"` | another name for the column |
///
/// Every other field is one column that sqlx must be able to encode and decode on the database.
/// The struct gets a private method `raise`.
#[proc_macro_attribute]
pub fn aggregate(arguments: TokenStream, item: TokenStream) -> TokenStream {
    aggregate::aggregate(arguments.into(), item.into()).into()
}

/// Makes a struct a value object that an aggregate can embed in its own table.
///
/// ```
/// use outbox_runtime::prelude::*;
///
/// /// An amount.
/// #[value_object]
/// pub struct Money {
///     cents: i64,
///     currency: String,
/// }
///
/// /// A product, in the columns `id`, `price_cents`, `price_currency` and `version`.
/// #[aggregate(table = "products")]
/// pub struct Product {
///     id: i64,
///     #[aggregate(embed)]
///     price: Money,
///     root: AggregateRoot,
/// }
/// ```
///
/// On a field, `#[value_object(json)]` stores it as JSON, and `#[value_object(column = "...")]`
/// renames its column. `#[value_object(crate = "...")]` on the struct names a renamed runtime.
#[proc_macro_attribute]
pub fn value_object(arguments: TokenStream, item: TokenStream) -> TokenStream {
    value_object::value_object(arguments.into(), item.into()).into()
}

/// Makes an async function a handler whose effect happens once, however often its message comes.
///
/// The function gets the event in its envelope and a unit of work over the transaction that also
/// holds the inbox row. What it saves and raises there commits with that row, or not at all.
/// `App` finds it by itself.
///
/// ```
/// use outbox_runtime::prelude::*;
///
/// # #[derive(Clone)] pub struct Limits { pub per_order: i64 }
/// # #[derive(Debug)] pub struct ReserveError;
/// # impl std::fmt::Display for ReserveError {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("no stock") }
/// # }
/// # impl std::error::Error for ReserveError {}
/// /// The customer paid.
/// #[domain_event(version = 1)]
/// pub struct OrderPaid {
///     /// Which order.
///     pub order_id: String,
/// }
///
/// #[idempotent_handler(consumer = "inventory.reserve-stock", key = "{event.order_id}:reserve")]
/// async fn reserve_stock(
///     event: Envelope<OrderPaid>,
///     uow: &mut UnitOfWork<'_, sqlx::Sqlite>,
///     State(limits): State<Limits>,
/// ) -> Result<(), ReserveError> {
///     // load, decide, save, raise
///     Ok(())
/// }
/// ```
///
/// | key | meaning | default |
/// |---|---|---|
/// | `key = "{message_id}"` | what two deliveries of one message have in common, and no other message of the consumer | required |
/// | `consumer = "inventory.reserve-stock"` | the consumer's name in the inbox; renaming it makes old messages new | the function's name |
/// | `versions = 1..=2` | the versions of the event that it takes; one handler may take the old, another the new ones | all that the event's type reads |
/// | `crate = "::outbox_runtime"` | where the runtime is, if the dependency was renamed | `::outbox_runtime` |
///
/// Placeholders of the key: `{message_id}`, `{correlation_id}`, `{causation_id}`,
/// `{aggregate_id}`, `{aggregate_type}`, `{event_type}`, `{schema_version}`, `{sequence}`, and the
/// event's fields as `{event.order_id}` or `{event.address.city}`. `{{` and `}}` are braces.
///
/// The arguments are the envelope, the unit of work, and any number of [`State`]s, each set by
/// `App::state`. The database is a concrete type, or the function's one type parameter: then it
/// serves on every database that is enabled. The error is any type that fits
/// `Box<dyn Error + Send + Sync>`; `Classify` tells permanent failures from transient ones.
/// The function itself stays as it is and can be called in tests.
///
/// [`State`]: https://docs.rs/outbox-runtime/latest/outbox_runtime/struct.State.html
#[proc_macro_attribute]
pub fn idempotent_handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    idempotent_handler::idempotent_handler(arguments.into(), item.into()).into()
}

#[cfg(test)]
mod tests;
