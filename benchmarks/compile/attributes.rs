use outbox_runtime::Error;
use outbox_runtime::prelude::*;
use sqlx::Sqlite;
use time::OffsetDateTime;

use crate::parcelMM::{ParcelMMPacked, ParcelMMSent};
use crate::{Address, CarrierId, CustomerId, Limits};

typed_id! { pub struct ParcelNNId(String); }

#[domain_event(version = 1, name = "parcelNN.packed", key = "{parcel_id}:packed")]
#[derive(Debug, Clone, PartialEq)]
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

#[domain_event(version = 1, name = "parcelNN.sent", key = "{parcel_id}:{carrier_id}")]
#[derive(Debug, Clone, PartialEq)]
pub struct ParcelNNSent {
    pub parcel_id: ParcelNNId,
    pub customer_id: CustomerId,
    pub carrier_id: CarrierId,
    pub price_cents: i64,
    pub currency: String,
    pub express: bool,
    pub tags: Vec<String>,
}

#[domain_event(version = 1, name = "parcelNN.delivered")]
#[derive(Debug, Clone, PartialEq)]
pub struct ParcelNNDelivered {
    pub parcel_id: ParcelNNId,
    pub customer_id: CustomerId,
    pub carrier_id: CarrierId,
    pub signed_by: Option<String>,
    pub attempts: i64,
    pub delivered_at: OffsetDateTime,
}

#[domain_event(
    version = 1,
    name = "parcelNN.returned",
    key = "{parcel_id}:{reason}:{attempts}"
)]
#[derive(Debug, Clone, PartialEq)]
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

#[aggregate(
    table = "parcelNN",
    events(ParcelNNPacked, ParcelNNSent, ParcelNNDelivered, ParcelNNReturned)
)]
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
    #[aggregate(json)]
    destination: Address,
    root: AggregateRoot,
}

#[idempotent_handler(consumer = "parcelNN.weigh", key = "{event.parcel_id}:v1")]
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

#[idempotent_handler(
    consumer = "parcelNN.price",
    key = "{aggregate_type}:{event.parcel_id}:{event.carrier_id}"
)]
pub async fn price(
    event: Envelope<ParcelMMSent>,
    uow: &mut UnitOfWork<'_, Sqlite>,
) -> Result<(), Error> {
    let id = ParcelNNId::from(event.parcel_id.as_inner().clone());
    let mut parcel = uow.get::<ParcelNN>(&id).await?;
    parcel.price(event.price_cents + 1);
    uow.save(&mut parcel).await
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
