use std::collections::BTreeMap;

use outbox_runtime::prelude::*;
use outbox_tests::{Fixture, on_both_databases};
use tracing::{Instrument, info_span};

use super::recorder::{Recorded, install, spans_of};
use super::shop::{Billing, ShopDb, app, eventually, open_shop, place, stop, unique, until};

on_both_databases!(
    commit_publish_and_handle_are_spans_with_all_ids,
    a_commit_says_how_many_events_it_writes_and_why_it_failed,
);

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

async fn commit_publish_and_handle_are_spans_with_all_ids<DB: ShopDb>(fixture: Fixture<DB>) {
    install();
    open_shop(&fixture).await;
    let billing = Billing::default();
    let broker = InProcessBroker::new();
    let running = app(&fixture, &billing)
        .broker(broker)
        .start()
        .await
        .unwrap();
    let correlation = unique::<DB>("all ids");
    let context = MessageContext::new()
        .correlation_id(&correlation)
        .traceparent(TRACEPARENT);
    place(&fixture, context, "o-1", "quick")
        .instrument(info_span!("request"))
        .await;
    eventually(&fixture, "SELECT count(*) FROM invoices", 1).await;
    until(|| spans_of(&correlation).len() == 5).await;
    stop(running).await;

    let spans = spans_of(&correlation);
    let order = billing.attempts()[0].metadata.message_id.to_string();
    let invoice = spans[3].field("messaging.message.id").unwrap().to_owned();
    assert_ne!(order, invoice);
    let span = |name, parent, fields: &[(&'static str, &str)]| {
        let shared = [
            ("messaging.system", "outbox"),
            ("messaging.operation.name", name),
            ("messaging.message.conversation_id", &correlation),
        ];
        let all = shared.iter().chain(fields);
        Recorded {
            name,
            parent,
            fields: all.map(|&(name, value)| (name, value.to_owned())).collect(),
        }
    };
    let of_order = [
        ("messaging.message.id", &*order),
        ("cloudevents.event_type", "order.placed"),
        ("outbox.aggregate.type", "Order"),
        ("outbox.aggregate.id", "o-1"),
    ];
    let of_invoice = [
        ("messaging.message.id", &*invoice),
        ("cloudevents.event_type", "invoice.issued"),
        ("outbox.aggregate.type", "Invoice"),
        ("outbox.aggregate.id", "o-1"),
    ];
    let created = [
        ("otel.kind", "producer"),
        ("messaging.operation.type", "create"),
    ];
    let sent = [
        ("otel.kind", "client"),
        ("messaging.operation.type", "send"),
        ("outbox.attempt", "1"),
        ("outbox.traceparent", TRACEPARENT),
    ];
    let expected = [
        span(
            "commit",
            Some("request"),
            &[&of_order[..], &created].concat(),
        ),
        span(
            "publish",
            None,
            &[
                &of_order[..],
                &sent,
                &[("otel.name", "publish order.placed")],
            ]
            .concat(),
        ),
        span(
            "handle",
            None,
            &[
                &of_order[..],
                &[
                    ("otel.name", "handle billing.invoice"),
                    ("otel.kind", "consumer"),
                    ("messaging.operation.type", "process"),
                    ("outbox.consumer", "billing.invoice"),
                    ("outbox.attempt", "1"),
                    ("outbox.outcome", "committed"),
                    ("outbox.traceparent", TRACEPARENT),
                ],
            ]
            .concat(),
        ),
        span(
            "commit",
            Some("handle"),
            &[&of_invoice[..], &created].concat(),
        ),
        span(
            "publish",
            None,
            &[
                &of_invoice[..],
                &sent,
                &[("otel.name", "publish invoice.issued")],
            ]
            .concat(),
        ),
    ];
    assert_eq!(spans.len(), expected.len(), "{spans:#?}");
    for (found, expected) in spans.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

async fn a_commit_says_how_many_events_it_writes_and_why_it_failed<DB: ShopDb>(
    fixture: Fixture<DB>,
) {
    install();
    open_shop(&fixture).await;
    let correlation = unique::<DB>("counts");
    let begin = || {
        let context = MessageContext::new().correlation_id(&correlation);
        fixture.outbox.begin(context)
    };
    begin().await.unwrap().commit().await.unwrap();
    let mut uow = begin().await.unwrap();
    for id in ["a", "b"] {
        uow.add(&mut super::shop::Order::place(id, ""))
            .await
            .unwrap();
    }
    uow.commit().await.unwrap();
    let mut uow = begin().await.unwrap();
    uow.add(&mut super::shop::Order::place("a", ""))
        .await
        .unwrap();
    uow.commit().await.unwrap_err();

    let spans = spans_of(&correlation);
    let seen: Vec<BTreeMap<_, _>> = spans
        .iter()
        .map(|span| {
            assert_eq!(span.name, "commit");
            let mut fields = span.fields.clone();
            for always in [
                "messaging.system",
                "messaging.operation.name",
                "messaging.message.conversation_id",
                "messaging.message.id",
            ] {
                fields.remove(always);
            }
            fields
        })
        .collect();
    let expected = [
        BTreeMap::from([
            ("otel.kind", "internal"),
            ("messaging.batch.message_count", "0"),
        ]),
        BTreeMap::from([
            ("otel.kind", "producer"),
            ("messaging.operation.type", "create"),
            ("messaging.batch.message_count", "2"),
        ]),
        BTreeMap::from([
            ("otel.kind", "producer"),
            ("messaging.operation.type", "create"),
            ("cloudevents.event_type", "order.placed"),
            ("outbox.aggregate.type", "Order"),
            ("outbox.aggregate.id", "a"),
            ("otel.status_code", "ERROR"),
            ("error.type", "permanent"),
        ]),
    ];
    let expected = expected.map(|fields| {
        let owned = fields
            .into_iter()
            .map(|(name, value)| (name, value.to_owned()));
        owned.collect::<BTreeMap<_, _>>()
    });
    assert_eq!(seen, expected);
}
