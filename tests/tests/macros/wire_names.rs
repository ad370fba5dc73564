use outbox_runtime::DomainEvent;

mod before {
    use outbox_runtime::prelude::*;

    #[domain_event(version = 1)]
    pub(super) struct OrderPlaced {
        pub(super) cents: i64,
    }

    #[domain_event(version = 1, name = "order.paid")]
    pub(super) struct OrderPaid {
        pub(super) cents: i64,
    }
}

mod after {
    use outbox_runtime::prelude::*;

    #[domain_event(version = 1)]
    pub(super) struct OrderPlaced {
        pub(super) cents: i64,
    }

    #[domain_event(version = 1, name = "order.paid")]
    pub(super) struct PaymentReceived {
        pub(super) cents: i64,
    }
}

/// What was written by the one is read by the other.
fn is_the_same<Old: DomainEvent, New: DomainEvent>(written: &Old) -> New {
    assert_eq!((Old::NAME, Old::VERSION), (New::NAME, New::VERSION));
    New::decode(Old::VERSION, &written.encode().unwrap()).unwrap()
}

#[test]
fn neither_a_module_nor_a_renamed_type_changes_a_name() {
    let placed: after::OrderPlaced = is_the_same(&before::OrderPlaced { cents: 1 });
    let paid: after::PaymentReceived = is_the_same(&before::OrderPaid { cents: 2 });
    assert_eq!((placed.cents, paid.cents), (1, 2));
}
