use std::time::Duration;

use lapin::Confirmation;
use lapin::options::BasicPublishOptions;
use tokio::time::timeout;

use super::failure::Failure;
use super::outgoing::Outgoing;
use super::topology::declare_exchange;
use super::{RabbitMqBroker, Unroutable};
use crate::broker::PublishError;
use crate::domain::Message;

/// For how long it is no fault of a message that no queue is bound behind an exchange that was just
/// made. Readers see to their bindings more often than that.
const BIND_WITHIN: Duration = Duration::from_secs(30);

/// What became of a message that the server answered for.
enum Answer {
    Taken,
    /// No queue is bound for it.
    Unroutable,
    /// It went to a queue that did not take it.
    Refused,
}

/// Publishes a message and waits until its queues have it.
pub(super) async fn publish(
    broker: &RabbitMqBroker,
    message: &Message,
) -> Result<(), PublishError> {
    let outgoing = Outgoing::of(broker, message)?;
    let event_type = message.metadata.event_type.as_str();
    let is_mandatory =
        broker.unroutable == Unroutable::Refuse && !broker.nobody_reads.contains(event_type);
    let limit = broker.options.confirm_within;
    let answer = timeout(limit, send(broker, &outgoing, is_mandatory))
        .await
        .map_err(|_| PublishError::transient(Failure::NoAnswer(limit)))??;
    match answer {
        Answer::Taken => Ok(()),
        Answer::Refused => Err(PublishError::transient(
            "RabbitMQ refused the message: a queue is full, or its server failed",
        )),
        Answer::Unroutable if broker.made.is_recent(&outgoing.exchange, BIND_WITHIN) => {
            Err(PublishError::transient(format!(
                "the exchange {} was made a moment ago and no queue is bound for {event_type} yet",
                outgoing.exchange
            )))
        }
        Answer::Unroutable => Err(PublishError::permanent(format!(
            "no queue is bound for {event_type} behind the exchange {}; start a service that handles \
             it and requeue the message, or allow it with nobody_reads([{event_type:?}])",
            outgoing.exchange
        ))),
    }
}

async fn send(
    broker: &RabbitMqBroker,
    outgoing: &Outgoing<'_>,
    is_mandatory: bool,
) -> Result<Answer, PublishError> {
    match send_once(broker, outgoing, is_mandatory).await {
        Err(Failed::At(failure)) if failure.is_missing() => {}
        other => return other.map_err(Failed::into_error),
    }
    let exchange = &outgoing.exchange;
    if !broker.options.declare {
        return Err(PublishError::transient(Failure::Missing {
            what: format!("exchange {exchange}"),
            remedy: "make it (topic, durable), or let it be declared",
        }));
    }
    let made = async {
        let established = broker.publishing.get().await?;
        declare_exchange(&*established.channel().await?, exchange).await
    };
    made.await.map_err(PublishError::transient)?;
    broker.made.note(exchange);
    let again = send_once(broker, outgoing, is_mandatory).await;
    again.map_err(Failed::into_error)
}

/// Why a message was not sent, or not confirmed.
enum Failed {
    At(Failure),
    Unfit(PublishError),
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::At(failure)
    }
}

impl Failed {
    fn into_error(self) -> PublishError {
        match self {
            Self::Unfit(error) => error,
            // The channel had this message alone, so it is the one that the server objects to.
            Self::At(failure) if failure.is_precondition() => PublishError::permanent(failure),
            Self::At(failure) => PublishError::transient(failure),
        }
    }
}

async fn send_once(
    broker: &RabbitMqBroker,
    outgoing: &Outgoing<'_>,
    is_mandatory: bool,
) -> Result<Answer, Failed> {
    let established = broker.publishing.get().await?;
    outgoing
        .fits(established.frame_bytes())
        .map_err(Failed::Unfit)?;
    let channel = established.publishing_channel().await?;
    let options = BasicPublishOptions {
        mandatory: is_mandatory,
        ..BasicPublishOptions::default()
    };
    let sent = channel.basic_publish(
        outgoing.exchange.clone(),
        outgoing.routing_key.clone(),
        options,
        outgoing.body.as_bytes(),
        outgoing.properties.clone(),
    );
    let confirmation = sent.await.map_err(Failure::from)?.await;
    let answer = match confirmation.map_err(Failure::from)? {
        Confirmation::Ack(None) => Answer::Taken,
        Confirmation::Ack(Some(_)) => Answer::Unroutable,
        Confirmation::Nack(_) => Answer::Refused,
        // The channel was opened with confirms.
        Confirmation::NotRequested => return Err(Failure::Closed.into()),
    };
    channel.give_back();
    Ok(answer)
}
