//! Passwords and certificates.

use std::error::Error;
use std::sync::Arc;

use outbox_runtime::broker::{Broker, Publisher, Subscriber, Subscription, open};
use outbox_servers::Setup;

use super::delivering::published;
use super::{Ground, Member, event};
use crate::brokers::TestBroker;

const PASSWORD: &str = "se:cr/et %@";

/// In the URL or beside it, and neither an error nor `Debug` says it.
pub async fn a_password_is_needed_and_never_told<B: TestBroker>() {
    let Some(mut ground) = with::<B>(Setup::default().credentials("shop", PASSWORD)) else {
        return;
    };
    let scheme = ground.url.split("://").next().unwrap().to_owned();
    let rest = ground.url.rsplit('@').next().unwrap();
    let host = rest
        .strip_prefix(&format!("{scheme}://"))
        .unwrap_or(rest)
        .to_owned();
    ground.url = format!("{scheme}://shop:se%3Acr%2Fet%20%25%40@{host}");
    works(&ground.broker()).await;
    let options = ground.options();
    let beside = open(
        &format!("{scheme}://{host}"),
        options.clone().credentials("shop", PASSWORD),
    );
    works(&beside.unwrap()).await;

    let shown = format!("{:?}", options.clone().credentials("shop", PASSWORD));
    assert!(!shown.contains("se:cr"), "{shown}");
    for wrong in [
        open(
            &format!("{scheme}://shop:wr0ng%3Apass@{host}"),
            options.clone(),
        ),
        open(&ground.url, options.credentials("shop", "wr0ng:pass")),
    ] {
        refuses(&wrong.unwrap()).await;
    }
}

fn with<B: TestBroker>(setup: Setup) -> Option<Ground<B>> {
    if !B::HAS_SECRETS {
        eprintln!("skipped: the server of these tests knows neither passwords nor TLS");
        return None;
    }
    Ground::with(setup)
}

/// The server's certificate is by an authority that nobody knows.
pub async fn a_certificate_of_ones_own_is_trusted_when_told<B: TestBroker>() {
    let Some(ground) = with::<B>(Setup::default().tls(true)) else {
        return;
    };
    let server = ground.server.as_ref().unwrap();
    let Some(authority) = server.ca().map(ToOwned::to_owned) else {
        eprintln!("skipped: the server of these tests has no TLS");
        return;
    };
    works(&ground.broker_with(ground.options().root_certificate(authority))).await;
    refuses(&ground.broker()).await;
}

async fn works(broker: &Arc<dyn Broker>) {
    let mut member = Member::join(broker, "group", &["Happened"]).await;
    let message = event("Happened", "1", 1);
    published(broker, std::slice::from_ref(&message)).await;
    assert_eq!(member.take().await, message);
    member.leave().await;
}

async fn refuses(broker: &Arc<dyn Broker>) {
    let results = broker.publish(&[event("Happened", "1", 1)]).await;
    let error = results[0].as_ref().unwrap_err();
    assert!(error.is_transient(), "{error}");
    says_no_password(error);
    let subscription = Subscription::new("group", ["Happened"]).of_partition(0);
    if let Err(error) = broker.subscribe(subscription).await {
        says_no_password(&error);
    }
}

fn says_no_password(error: &(dyn Error + 'static)) {
    let mut error = Some(error);
    while let Some(one) = error {
        let text = format!("{one} {one:?}");
        for secret in ["se:cr", "se%3Acr", "wr0ng"] {
            assert!(!text.contains(secret), "{text}");
        }
        error = one.source();
    }
}
