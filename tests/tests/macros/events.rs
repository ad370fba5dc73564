use std::fmt;

use outbox_runtime::handler::EventRegistration;
use outbox_runtime::prelude::*;
use serde::{Deserialize, Serialize};

typed_id! {
    /// An order.
    pub struct OrderId(String);
}

#[domain_event(version = 1)]
pub struct Bare;

#[test]
fn the_name_is_the_types_and_there_is_no_key() {
    assert_eq!(Bare::NAME, "Bare");
    assert_eq!((Bare::VERSION, Bare::OLDEST_VERSION), (1, 1));
    assert_eq!(Bare.business_key().unwrap(), None);
    assert_eq!(Bare.encode().unwrap(), "null");
    assert!(Bare::decode(1, "null").is_ok());
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Address {
    pub city: String,
    pub floor: Option<u8>,
}

#[domain_event(
    version = 1,
    name = "order.shipped",
    key = "{{{order_id}}}:{address.city}:{address.floor}:{note}:{type}"
)]
#[derive(Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OrderShipped {
    pub order_id: OrderId,
    pub address: Address,
    pub note: Option<String>,
    pub r#type: u8,
}

fn shipped(note: Option<&str>) -> OrderShipped {
    OrderShipped {
        order_id: OrderId::from("a:1".to_owned()),
        address: Address {
            city: "Köln".to_owned(),
            floor: None,
        },
        note: note.map(str::to_owned),
        r#type: 3,
    }
}

#[test]
fn a_key_is_made_of_fields() {
    assert_eq!(
        shipped(None).business_key().unwrap().unwrap(),
        "{a%3A1}:K%C3%B6ln:%-:%-:3"
    );
    assert_eq!(
        shipped(Some("%-")).business_key().unwrap().unwrap(),
        "{a%3A1}:K%C3%B6ln:%-:%25-:3"
    );
}

#[test]
fn the_users_serde_attributes_stand() {
    let payload = shipped(None).encode().unwrap();
    assert!(payload.starts_with(r#"{"orderId":"a:1","#), "{payload}");
    assert_eq!(OrderShipped::decode(1, &payload).unwrap(), shipped(None));
}

#[domain_event(version = 1, key = "{0}/{1}")]
pub struct Moved(pub i64, pub String);

/// Says where.
#[domain_event(version = 1, key = "{id}:{at}")]
#[derive(Debug, PartialEq)]
pub enum Changed {
    /// Up.
    Up { id: i64, at: u8, by: u8 },
    /// Down.
    Down { at: String, id: i64 },
}

#[test]
fn tuples_and_enums_have_keys_too() {
    let moved = Moved(4, "a/b".to_owned());
    assert_eq!(moved.business_key().unwrap().unwrap(), "4/a%2Fb");
    let up = Changed::Up {
        id: 1,
        at: 2,
        by: 3,
    };
    assert_eq!(up.business_key().unwrap().unwrap(), "1:2");
    let down = Changed::Down {
        at: "noon".to_owned(),
        id: 7,
    };
    assert_eq!(down.business_key().unwrap().unwrap(), "7:noon");
    assert_eq!(Changed::decode(1, &down.encode().unwrap()).unwrap(), down);
}

#[domain_event(version = 1)]
#[derive(serde::Serialize, Deserialize, Debug)]
pub struct DerivedByTheUser {
    #[serde(default)]
    pub value: i64,
}

#[domain_event(version = 1)]
#[derive(Debug, Serialize)]
pub struct HalfDerived {
    #[serde(rename = "v")]
    pub value: i64,
}

/// An event with serde by hand.
#[domain_event(version = 1, serde = custom)]
#[derive(Debug)]
pub struct ByHand(i64);

impl Serialize for ByHand {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for ByHand {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

#[test]
fn serde_is_derived_where_the_user_has_not() {
    assert_eq!(DerivedByTheUser::decode(1, "{}").unwrap().value, 0);
    assert_eq!(HalfDerived::decode(1, r#"{"v":4}"#).unwrap().value, 4);
    assert_eq!(ByHand::decode(1, "\"12\"").unwrap().0, 12);
    assert_eq!(ByHand(12).encode().unwrap(), "\"12\"");
}

#[domain_event(version = 1, name = "order.placed")]
pub struct OrderPlacedV1 {
    pub total: i64,
}

#[domain_event(version = 2, name = "order.placed", upcast_from = OrderPlacedV1)]
pub struct OrderPlacedV2 {
    pub total: i64,
    pub currency: String,
}

#[domain_event(version = 3, name = "order.placed", upcast_from = OrderPlacedV2)]
#[derive(Debug, PartialEq)]
pub struct OrderPlaced {
    pub cents: i64,
    pub currency: String,
}

impl From<OrderPlacedV1> for OrderPlacedV2 {
    fn from(old: OrderPlacedV1) -> Self {
        Self {
            total: old.total,
            currency: "EUR".to_owned(),
        }
    }
}

impl From<OrderPlacedV2> for OrderPlaced {
    fn from(old: OrderPlacedV2) -> Self {
        Self {
            cents: old.total * 100,
            currency: old.currency,
        }
    }
}

#[test]
fn a_chain_of_versions_is_upcast_step_by_step() {
    let placed = |currency: &str| OrderPlaced {
        cents: 500,
        currency: currency.to_owned(),
    };
    assert_eq!((OrderPlaced::OLDEST_VERSION, OrderPlaced::VERSION), (1, 3));
    assert_eq!(
        OrderPlaced::decode(1, r#"{"total":5}"#).unwrap(),
        placed("EUR")
    );
    assert_eq!(
        OrderPlaced::decode(2, r#"{"total":5,"currency":"USD"}"#).unwrap(),
        placed("USD")
    );
    assert_eq!(
        OrderPlaced::decode(3, r#"{"cents":500,"currency":"CHF"}"#).unwrap(),
        placed("CHF")
    );
}

#[test]
fn versions_outside_the_chain_are_refused() {
    for version in [0, 4] {
        let error = OrderPlaced::decode(version, "{}").unwrap_err().to_string();
        assert!(error.contains("reads v1 to v3"), "{error}");
    }
    let error = OrderPlaced::decode(1, "{}").unwrap_err().to_string();
    assert!(error.contains("order.placed v1"), "{error}");
}

#[test]
fn events_register_themselves() {
    let placed: Vec<_> = EventRegistration::all()
        .filter(|event| event.name == "order.placed")
        .collect();
    assert_eq!(placed.len(), 3);
    for event in placed {
        assert!(
            event.rust_type.contains("::events::OrderPlaced"),
            "{event:?}"
        );
        assert!(
            event.file.ends_with("events.rs") && event.line > 0,
            "{event:?}"
        );
    }
}

struct Failing;

impl fmt::Display for Failing {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

#[domain_event(version = 1, key = "{failing}", serde = custom)]
pub struct FailingKey {
    failing: Failing,
}

impl Serialize for FailingKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for FailingKey {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self { failing: Failing })
    }
}

#[test]
fn a_value_that_can_not_be_displayed_is_an_error() {
    assert!(FailingKey { failing: Failing }.business_key().is_err());
}

#[test]
fn an_event_can_be_declared_inside_a_function() {
    #[domain_event(version = 1)]
    struct Local {
        value: i64,
    }
    assert_eq!(Local { value: 1 }.encode().unwrap(), r#"{"value":1}"#);
}
