use lapin::Confirmation;
use lapin::options::BasicPublishOptions;
use tokio::time::{Instant, timeout_at};

use super::connection::PublishingChannel;
use super::failure::Failure;
use super::outgoing::Outgoing;
use super::topology::declare_exchange;
use super::{RabbitMqBroker, Unroutable};
use crate::broker::PublishError;
use crate::domain::Message;

/// What became of a message that the server answered for.
enum Answer {
    Taken,
    /// No queue is bound for it.
    Unroutable,
    /// It went to a queue that did not take it.
    Refused,
}

/// Publishes a message and waits until its queues have it. By `begun_by` it has to have a channel, and
/// from then on the limit of a confirmation counts.
pub(super) async fn publish(
    broker: &RabbitMqBroker,
    message: &Message,
    begun_by: Instant,
) -> Result<(), PublishError> {
    let outgoing = Outgoing::of(broker, message)?;
    let event_type = message.metadata.event_type.as_str();
    let is_mandatory =
        broker.unroutable == Unroutable::Refuse && !broker.nobody_reads.contains(event_type);
    let (exchange, routing_key) = (&outgoing.exchange, &outgoing.routing_key);
    match send(broker, &outgoing, is_mandatory, begun_by).await? {
        Answer::Taken => {
            if is_mandatory {
                broker.unrouted.forget(exchange, routing_key);
            }
            Ok(())
        }
        Answer::Refused => Err(PublishError::transient(
            "RabbitMQ refused the message: a queue is full, or its server failed",
        )),
        Answer::Unroutable => {
            let patience = broker.unroutable_after;
            let since = broker.unrouted.note(exchange, routing_key, patience);
            let what = format!("no queue is bound for {event_type} behind the exchange {exchange}");
            let remedy = format!(
                "start a service that handles it, or allow it with nobody_reads([{event_type:?}])"
            );
            Err(match since {
                Some(since) => PublishError::transient(format!(
                    "{what} since {since}; if none is {patience:?} after that, it is refused: {remedy}"
                )),
                None => {
                    PublishError::permanent(format!("{what}; {remedy}, and requeue the message"))
                }
            })
        }
    }
}

async fn send(
    broker: &RabbitMqBroker,
    outgoing: &Outgoing<'_>,
    is_mandatory: bool,
    begun_by: Instant,
) -> Result<Answer, PublishError> {
    let limit = broker.options.confirm_within;
    let established = timeout_at(begun_by, broker.publishing.get())
        .await
        .map_err(|_| PublishError::transient(Failure::NoAnswer(limit)))?
        .map_err(PublishError::transient)?;
    outgoing.fits(established.frame_bytes())?;
    // Where many are published at once it waits for others here, which is no fault of the server's.
    let channel = timeout_at(begun_by, established.publishing_channel())
        .await
        .map_err(|_| PublishError::transient(Failure::NoChannel(limit)))?
        .map_err(PublishError::transient)?;
    let sending = async {
        match send_over(channel, outgoing, is_mandatory).await {
            Err(failure) if failure.is_missing() => {
                send_again(broker, outgoing, is_mandatory).await
            }
            other => other,
        }
    };
    timeout_at(Instant::now() + limit, sending)
        .await
        .map_err(|_| PublishError::transient(Failure::NoAnswer(limit)))?
        .map_err(|failure| match failure.is_precondition() {
            // The channel had this message alone, so it is the one that the server objects to.
            true => PublishError::permanent(failure),
            false => PublishError::transient(failure),
        })
}

/// Makes the exchange that was missing, and sends the message.
async fn send_again(
    broker: &RabbitMqBroker,
    outgoing: &Outgoing<'_>,
    is_mandatory: bool,
) -> Result<Answer, Failure> {
    let exchange = &outgoing.exchange;
    if !broker.options.declare {
        return Err(Failure::Missing {
            what: format!("exchange {exchange}"),
            remedy: "make it (topic, durable), or let it be declared",
        });
    }
    let established = broker.publishing.get().await?;
    declare_exchange(&*established.channel().await?, exchange).await?;
    let channel = established.publishing_channel().await?;
    send_over(channel, outgoing, is_mandatory).await
}

async fn send_over(
    channel: PublishingChannel<'_>,
    outgoing: &Outgoing<'_>,
    is_mandatory: bool,
) -> Result<Answer, Failure> {
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
    let confirmation = sent.await?.await;
    let answer = match confirmation? {
        Confirmation::Ack(None) => Answer::Taken,
        Confirmation::Ack(Some(_)) => Answer::Unroutable,
        Confirmation::Nack(_) => Answer::Refused,
        // The channel was opened with confirms.
        Confirmation::NotRequested => return Err(Failure::Closed),
    };
    channel.give_back();
    Ok(answer)
}
