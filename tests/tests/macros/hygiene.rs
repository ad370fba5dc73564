//! Generated code holds wherever it stands: nothing of it depends on what is in scope.

#![allow(dead_code)]

/// The runtime under another name.
pub mod renamed {
    pub use outbox_runtime::{__private, Envelope, State, UnitOfWork};
}

/// No prelude at all, and its names taken by something else.
#[no_implicit_prelude]
mod shadowed {
    use super::renamed::{Envelope, State, UnitOfWork};

    pub struct Option;
    pub struct Some;
    pub struct None;
    pub struct Result<T, E>(T, E);
    pub struct Ok;
    pub struct Err;
    pub struct Vec;
    pub struct String;
    pub struct Box;
    pub struct From;
    pub struct Into;
    pub struct Send;
    pub struct Sync;
    pub struct Default;
    pub struct Iterator;
    pub struct DB;
    pub mod core {}
    pub mod std {}
    pub mod serde {}
    pub mod sqlx {}
    pub mod outbox_runtime {}

    type Text = ::std::string::String;

    #[::outbox_runtime::domain_event(version = 1, name = "shadowed", key = "{text}:{maybe}")]
    pub struct OldEvent {
        pub text: Text,
        pub maybe: ::std::option::Option<::core::primitive::i64>,
    }

    #[::outbox_runtime::domain_event(
        version = 2,
        name = "shadowed",
        upcast_from = OldEvent,
        crate = "super::renamed"
    )]
    pub enum Event {
        Text(Text),
    }

    impl ::core::convert::From<OldEvent> for Event {
        fn from(old: OldEvent) -> Self {
            Self::Text(old.text)
        }
    }

    #[::outbox_runtime::value_object(crate = "super::renamed")]
    pub struct Money {
        pub cents: ::core::primitive::i64,
        #[value_object(json)]
        pub parts: ::std::vec::Vec<Text>,
    }

    #[::outbox_runtime::aggregate(crate = "super::renamed", events(Event))]
    pub struct Thing {
        pub id: Text,
        #[aggregate(embed)]
        pub price: Money,
        #[aggregate(json)]
        pub arguments: ::std::vec::Vec<Text>,
        #[aggregate(skip)]
        pub columns: ::core::primitive::i64,
        pub row: ::std::option::Option<Text>,
        pub root: super::renamed::__private::AggregateRoot,
    }

    impl Thing {
        pub fn happen(&mut self) {
            self.raise(Event::Text(::std::string::String::new()));
        }
    }

    #[::outbox_runtime::idempotent_handler(
        key = "{message_id}:{aggregate_id}",
        versions = 1..=2,
        crate = "super::renamed"
    )]
    pub async fn shadowed(
        event: Envelope<Event>,
        call: &mut UnitOfWork<'_, ::sqlx::Sqlite>,
        State(outcome): State<::core::primitive::i64>,
    ) -> ::core::result::Result<(), super::Failed> {
        let _ = (event, call, outcome);
        ::core::result::Result::Ok(())
    }
}

#[derive(Debug)]
pub struct Failed;

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Failed {}

/// Items that a macro of the user's writes.
macro_rules! events {
    ($($name:ident = $version:literal, $key:literal;)+) => {$(
        #[outbox_runtime::domain_event(version = $version, key = $key)]
        pub struct $name {
            pub id: i64,
        }
    )+};
}

events! {
    FirstOfMany = 1, "{id}:first";
    SecondOfMany = 7, "{id}:second";
}

#[test]
fn macros_can_write_events() {
    use outbox_runtime::DomainEvent;
    assert_eq!(FirstOfMany::VERSION, 1);
    assert_eq!(SecondOfMany::VERSION, 7);
    let key = SecondOfMany { id: 3 }.business_key().unwrap();
    assert_eq!(key.as_deref(), Some("3:second"));
}

#[test]
fn names_that_are_taken_do_no_harm() {
    use outbox_runtime::{Aggregate, Persist};
    let mut thing = shadowed::Thing {
        id: "t".to_owned(),
        price: shadowed::Money {
            cents: 1,
            parts: Vec::new(),
        },
        arguments: Vec::new(),
        columns: 1,
        row: None,
        root: outbox_runtime::AggregateRoot::new(),
    };
    thing.happen();
    assert_eq!(thing.root().pending().count(), 1);
    let table = <shadowed::Thing as Persist<sqlx::Sqlite>>::table().unwrap();
    assert_eq!(table.table(), "thing");
}

/// Handlers with the names that generated code might use itself.
mod taken {
    use outbox_runtime::prelude::*;
    use sqlx::Sqlite;

    use super::{Failed, FirstOfMany};

    macro_rules! handlers {
        ($($name:ident),+) => {$(
            #[idempotent_handler(key = "{event.id}")]
            async fn $name(
                _: Envelope<FirstOfMany>,
                _: &mut UnitOfWork<'_, Sqlite>,
            ) -> Result<(), Failed> {
                Ok(())
            }
        )+};
    }

    handlers!(call, key, states, event, outcome, message, kind, error);
}
