use outbox_runtime::__private::{
    AggregateRegistration, BoxDynError, BoxFuture, ColumnValue, Columns, EventRegistration,
    HandlerCall, HandlerEntry, HandlerRegistration, KeyError, KeyWriter, LazyLock, Message,
    Persist, RaisedBy, RowLock, StateRequirement, TableMapping, add_json, failed, inventory,
    load_mapped, open,
};
use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use serde::{Deserialize, Serialize};
use sqlx::{Database, Sqlite};
use time::OffsetDateTime;

use crate::parcelMM::{ParcelMMPacked, ParcelMMSent};
use crate::{Address, CarrierId, CustomerId, Limits};

typed_id! { pub struct ParcelNNId(String); }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParcelNNPacked {
    pub parcel_id: ParcelNNId,
    pub customer_id: CustomerId,
    pub weight_grams: i64,
    pub width_mm: i64,
    pub height_mm: i64,
    pub note: Option<String>,
    pub destination: Address,
    pub packed_at: OffsetDateTime,
}

impl DomainEvent for ParcelNNPacked {
    const NAME: &'static str = "parcelNN.packed";
    const VERSION: u32 = 1;

    fn business_key(&self) -> Result<Option<String>, KeyError> {
        let mut key = KeyWriter::new();
        key.value(&self.parcel_id);
        key.literal(":packed");
        key.finish().map(Some)
    }
}

inventory::submit! {
    EventRegistration {
        name: "parcelNN.packed",
        version: 1,
        rust_type: concat!(module_path!(), "::ParcelNNPacked"),
        file: file!(),
        line: line!(),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParcelNNSent {
    pub parcel_id: ParcelNNId,
    pub customer_id: CustomerId,
    pub carrier_id: CarrierId,
    pub price_cents: i64,
    pub currency: String,
    pub express: bool,
    pub tags: Vec<String>,
}

impl DomainEvent for ParcelNNSent {
    const NAME: &'static str = "parcelNN.sent";
    const VERSION: u32 = 1;

    fn business_key(&self) -> Result<Option<String>, KeyError> {
        let mut key = KeyWriter::new();
        key.value(&self.parcel_id);
        key.literal(":");
        key.value(&self.carrier_id);
        key.finish().map(Some)
    }
}

inventory::submit! {
    EventRegistration {
        name: "parcelNN.sent",
        version: 1,
        rust_type: concat!(module_path!(), "::ParcelNNSent"),
        file: file!(),
        line: line!(),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParcelNNDelivered {
    pub parcel_id: ParcelNNId,
    pub customer_id: CustomerId,
    pub carrier_id: CarrierId,
    pub signed_by: Option<String>,
    pub attempts: i64,
    pub delivered_at: OffsetDateTime,
}

impl DomainEvent for ParcelNNDelivered {
    const NAME: &'static str = "parcelNN.delivered";
    const VERSION: u32 = 1;
}

inventory::submit! {
    EventRegistration {
        name: "parcelNN.delivered",
        version: 1,
        rust_type: concat!(module_path!(), "::ParcelNNDelivered"),
        file: file!(),
        line: line!(),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParcelNNReturned {
    pub parcel_id: ParcelNNId,
    pub customer_id: CustomerId,
    pub carrier_id: CarrierId,
    pub reason: String,
    pub attempts: i64,
    pub refund_cents: i64,
    pub currency: String,
    pub destination: Address,
    pub tags: Vec<String>,
    pub returned_at: OffsetDateTime,
}

impl DomainEvent for ParcelNNReturned {
    const NAME: &'static str = "parcelNN.returned";
    const VERSION: u32 = 1;

    fn business_key(&self) -> Result<Option<String>, KeyError> {
        let mut key = KeyWriter::new();
        key.value(&self.parcel_id);
        key.literal(":");
        key.value(&self.reason);
        key.literal(":");
        key.value(&self.attempts);
        key.finish().map(Some)
    }
}

inventory::submit! {
    EventRegistration {
        name: "parcelNN.returned",
        version: 1,
        rust_type: concat!(module_path!(), "::ParcelNNReturned"),
        file: file!(),
        line: line!(),
    }
}

#[derive(Debug)]
pub struct ParcelNN {
    id: ParcelNNId,
    customer_id: CustomerId,
    carrier_id: Option<CarrierId>,
    status: String,
    weight_grams: i64,
    price_cents: i64,
    note: Option<String>,
    express: bool,
    destination: Address,
    root: AggregateRoot,
}

impl Aggregate for ParcelNN {
    type Id = ParcelNNId;
    const TYPE: &'static str = "ParcelNN";

    fn id(&self) -> &ParcelNNId {
        &self.id
    }

    fn root(&self) -> &AggregateRoot {
        &self.root
    }

    fn root_mut(&mut self) -> &mut AggregateRoot {
        &mut self.root
    }
}

impl Raises<ParcelNNPacked> for ParcelNN {}
impl Raises<ParcelNNSent> for ParcelNN {}
impl Raises<ParcelNNDelivered> for ParcelNN {}
impl Raises<ParcelNNReturned> for ParcelNN {}

impl ParcelNN {
    fn raise<E: DomainEvent + RaisedBy<Self>>(&mut self, event: E) {
        self.root.record(event);
    }

    fn table() -> &'static TableMapping {
        static TABLE: LazyLock<TableMapping> = LazyLock::new(|| {
            TableMapping::new("parcelNN", "id", "version")
                .column("customer_id")
                .column("carrier_id")
                .column("status")
                .column("weight_grams")
                .column("price_cents")
                .column("note")
                .column("express")
                .column("destination")
        });
        &TABLE
    }
}

impl<DB: Backend> Persist<DB> for ParcelNN
where
    ParcelNNId: ColumnValue<DB>,
    CustomerId: ColumnValue<DB>,
    Option<CarrierId>: ColumnValue<DB>,
    String: ColumnValue<DB>,
    i64: ColumnValue<DB>,
    Option<String>: ColumnValue<DB>,
    bool: ColumnValue<DB>,
{
    fn load<'a>(
        connection: &'a mut DB::Connection,
        ids: &'a [ParcelNNId],
        lock: RowLock,
    ) -> BoxFuture<'a, Result<Vec<Self>, sqlx::Error>> {
        load_mapped::<DB, Self>(
            connection,
            Self::table(),
            ids,
            lock,
            |id, arguments| DB::add(arguments, id),
            |row| {
                let mut columns = Columns::<DB>::starting_at(row, 0);
                Ok(Self {
                    id: columns.value()?,
                    customer_id: columns.value()?,
                    carrier_id: columns.value()?,
                    status: columns.value()?,
                    weight_grams: columns.value()?,
                    price_cents: columns.value()?,
                    note: columns.value()?,
                    express: columns.value()?,
                    destination: columns.json()?,
                    root: AggregateRoot::at_version(columns.version()?),
                })
            },
        )
    }

    fn table() -> Option<&'static TableMapping> {
        Some(Self::table())
    }

    fn bind_id(&self, arguments: &mut <DB as Database>::Arguments) -> Result<(), BoxDynError> {
        DB::add(arguments, &self.id)
    }

    fn bind_others(&self, arguments: &mut <DB as Database>::Arguments) -> Result<(), BoxDynError> {
        DB::add(arguments, &self.customer_id)?;
        DB::add(arguments, &self.carrier_id)?;
        DB::add(arguments, &self.status)?;
        DB::add(arguments, &self.weight_grams)?;
        DB::add(arguments, &self.price_cents)?;
        DB::add(arguments, &self.note)?;
        DB::add(arguments, &self.express)?;
        add_json::<DB, _>(arguments, &self.destination)
    }
}

inventory::submit! {
    AggregateRegistration {
        aggregate_type: "ParcelNN",
        table: ParcelNN::table,
        rust_type: concat!(module_path!(), "::ParcelNN"),
        file: file!(),
        line: line!(),
    }
}

pub async fn weigh(
    event: Envelope<ParcelMMPacked>,
    uow: &mut UnitOfWork<'_, Sqlite>,
    State(limits): State<Limits>,
) -> Result<(), Error> {
    let id = ParcelNNId::from(event.parcel_id.as_inner().clone());
    let mut parcel = uow.get::<ParcelNN>(&id).await?;
    parcel.weigh(event.weight_grams.min(limits.grams));
    uow.save(&mut parcel).await
}

fn weigh_key(message: &Message) -> Result<String, HandlerError> {
    let event = open::<ParcelMMPacked>(message)?;
    let mut key = KeyWriter::new();
    key.value(&event.parcel_id);
    key.literal(":v1");
    key.finish().map_err(HandlerError::permanent)
}

fn weigh_call(call: HandlerCall<'_, Sqlite>) -> BoxFuture<'_, Result<(), HandlerError>> {
    Box::pin(async move {
        let event = open::<ParcelMMPacked>(call.message)?;
        let limits = call.states.extract::<Limits>()?;
        let outcome = weigh(event, call.unit_of_work, limits).await;
        outcome.map_err(|error| failed(error.failure_kind(), error))
    })
}

inventory::submit! {
    HandlerRegistration {
        consumer: "parcelNN.weigh",
        event_type: ParcelMMPacked::NAME,
        versions: (ParcelMMPacked::OLDEST_VERSION, ParcelMMPacked::VERSION),
        key: weigh_key,
        states: || vec![StateRequirement::of::<Limits>()],
        entries: &[&HandlerEntry::<Sqlite> { call: weigh_call }],
        function: concat!(module_path!(), "::weigh"),
        file: file!(),
        line: line!(),
    }
}

pub async fn price(
    event: Envelope<ParcelMMSent>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    let id = ParcelNNId::from(event.parcel_id.as_inner().clone());
    let mut parcel = uow.get::<ParcelNN>(&id).await?;
    parcel.price(event.price_cents + 1);
    uow.save(&mut parcel).await
}

fn price_key(message: &Message) -> Result<String, HandlerError> {
    let event = open::<ParcelMMSent>(message)?;
    let aggregate = message.metadata.aggregate.as_ref();
    let mut key = KeyWriter::new();
    key.optional(aggregate.map(|aggregate| &aggregate.aggregate_type));
    key.literal(":");
    key.value(&event.parcel_id);
    key.literal(":");
    key.value(&event.carrier_id);
    key.finish().map_err(HandlerError::permanent)
}

fn price_call(call: HandlerCall<'_, Sqlite>) -> BoxFuture<'_, Result<(), HandlerError>> {
    Box::pin(async move {
        let event = open::<ParcelMMSent>(call.message)?;
        let outcome = price(event, call.unit_of_work).await;
        outcome.map_err(|error| failed(error.failure_kind(), error))
    })
}

inventory::submit! {
    HandlerRegistration {
        consumer: "parcelNN.price",
        event_type: ParcelMMSent::NAME,
        versions: (ParcelMMSent::OLDEST_VERSION, ParcelMMSent::VERSION),
        key: price_key,
        states: Vec::new,
        entries: &[&HandlerEntry::<Sqlite> { call: price_call }],
        function: concat!(module_path!(), "::price"),
        file: file!(),
        line: line!(),
    }
}

impl ParcelNN {
    pub fn pack(id: &str, destination: Address) -> Self {
        let id = ParcelNNId::from(id.to_owned());
        let customer_id = CustomerId::from("somebody".to_owned());
        let mut parcel = Self {
            id: id.clone(),
            customer_id: customer_id.clone(),
            carrier_id: None,
            status: "packed".to_owned(),
            weight_grams: 0,
            price_cents: 100,
            note: None,
            express: true,
            destination: destination.clone(),
            root: AggregateRoot::new(),
        };
        parcel.raise(ParcelNNPacked {
            parcel_id: id,
            customer_id,
            weight_grams: 500,
            width_mm: 30,
            height_mm: 40,
            note: None,
            destination,
            packed_at: OffsetDateTime::UNIX_EPOCH,
        });
        parcel
    }

    fn weigh(&mut self, grams: i64) {
        self.weight_grams += grams;
        self.carrier_id = Some(CarrierId::from(7));
        self.raise(ParcelNNSent {
            parcel_id: self.id.clone(),
            customer_id: self.customer_id.clone(),
            carrier_id: CarrierId::from(7),
            price_cents: 20,
            currency: "EUR".to_owned(),
            express: self.express,
            tags: vec!["fragile".to_owned()],
        });
    }

    fn price(&mut self, cents: i64) {
        self.price_cents += cents;
        self.raise(ParcelNNDelivered {
            parcel_id: self.id.clone(),
            customer_id: self.customer_id.clone(),
            carrier_id: CarrierId::from(7),
            signed_by: self.note.clone(),
            attempts: 1,
            delivered_at: OffsetDateTime::UNIX_EPOCH,
        });
        self.raise(ParcelNNReturned {
            parcel_id: self.id.clone(),
            customer_id: self.customer_id.clone(),
            carrier_id: CarrierId::from(7),
            reason: "{damaged}".to_owned(),
            attempts: 1,
            refund_cents: cents,
            currency: "EUR".to_owned(),
            destination: self.destination.clone(),
            tags: Vec::new(),
            returned_at: OffsetDateTime::UNIX_EPOCH,
        });
    }
}
