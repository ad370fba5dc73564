"""What stands for a CloudEvent in a broker's message, by the converters of `cloudevents` alone.

The package has bindings to Kafka, to AMQP and to RabbitMQ. It has none to NATS, whose binding is
HTTP's to the letter (`ce-` before each name, values percent-encoded), and there is none to Redis
Streams, where outbox has the fields of an entry be Kafka's headers, beside `data` for the content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings import amqp, http, kafka, rabbitmq

CONTENT_TYPE = "content-type"


@dataclass(frozen=True)
class Wire:
    """A message as a plain client takes and gives it."""

    headers: dict[str, Any]
    content_type: str | None
    body: bytes
    key: str | None = None


@dataclass(frozen=True)
class Binding:
    """How events are written, in either mode, and read."""

    binary: Callable[[BaseCloudEvent], Wire]
    structured: Callable[[BaseCloudEvent], Wire]
    read: Callable[[Wire], BaseCloudEvent]


# ANCHOR: nats
def of_http(message: http.HTTPMessage) -> Wire:
    headers = dict(message.headers)
    return Wire(headers, headers.pop(CONTENT_TYPE, None), message.body)


def to_http(wire: Wire) -> http.HTTPMessage:
    return http.HTTPMessage(with_content_type(wire), wire.body)


NATS = Binding(
    binary=lambda event: of_http(http.to_binary_event(event)),
    structured=lambda event: of_http(http.to_structured_event(event)),
    read=lambda wire: http.from_http_event(to_http(wire)),
)
# ANCHOR_END: nats


# ANCHOR: kafka
def of_kafka(message: kafka.KafkaMessage) -> Wire:
    headers = {name: value.decode() for name, value in message.headers.items()}
    return Wire(headers, headers.pop(CONTENT_TYPE, None), message.value, message.key)


def to_kafka(wire: Wire) -> kafka.KafkaMessage:
    headers = with_content_type(wire).items()
    return kafka.KafkaMessage(
        {name: value.encode() for name, value in headers}, wire.key, wire.body
    )


KAFKA = Binding(
    binary=lambda event: of_kafka(kafka.to_binary_event(event)),
    structured=lambda event: of_kafka(kafka.to_structured_event(event)),
    read=lambda wire: kafka.from_kafka_event(to_kafka(wire)),
)
# ANCHOR_END: kafka


# ANCHOR: rabbitmq
def of_amqp(message: amqp.AMQPMessage) -> Wire:
    content_type = message.properties.get(CONTENT_TYPE)
    return Wire(message.application_properties, content_type, message.application_data)


def to_amqp(wire: Wire) -> amqp.AMQPMessage:
    properties = {} if wire.content_type is None else {CONTENT_TYPE: wire.content_type}
    return amqp.AMQPMessage(properties, wire.headers, wire.body)


AMQP = Binding(
    binary=lambda event: of_amqp(amqp.to_binary_event(event)),
    structured=lambda event: of_amqp(amqp.to_structured_event(event)),
    read=lambda wire: amqp.from_amqp_event(to_amqp(wire)),
)
# ANCHOR_END: rabbitmq


def of_rabbitmq(message: rabbitmq.RabbitMQMessage) -> Wire:
    return Wire(message.headers, message.content_type, message.body)


# The package's binding to RabbitMQ is Knative's. Outbox reads it too; what it writes is the binding to
# AMQP, which is CloudEvents' own, and whose application properties are RabbitMQ's headers.
KNATIVE = Binding(
    binary=lambda event: of_rabbitmq(rabbitmq.to_binary_event(event)),
    structured=lambda event: of_rabbitmq(rabbitmq.to_structured_event(event)),
    read=lambda wire: rabbitmq.from_rabbitmq_event(
        rabbitmq.RabbitMQMessage(wire.headers, wire.content_type, wire.body)
    ),
)

BINDINGS = {
    "nats": NATS,
    "kafka": KAFKA,
    "redis": KAFKA,
    "rabbitmq": AMQP,
    "knative": KNATIVE,
}


def with_content_type(wire: Wire) -> dict[str, Any]:
    if wire.content_type is None:
        return wire.headers
    return {**wire.headers, CONTENT_TYPE: wire.content_type}


# ANCHOR: partition
def partition_of(key: str, partitions: int) -> int:
    """Where all events of one key go: FNV-1a of 64 bits, folded to 32, modulo the partitions.

    Kafka's clients have a rule of their own, murmur2, so nobody asks this there.
    """
    hashed = 0xCBF29CE484222325
    for byte in key.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return ((hashed >> 32) ^ (hashed & 0xFFFFFFFF)) % partitions
# ANCHOR_END: partition


def token(text: str) -> str:
    """Any text as one token of a NATS subject."""
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
    return "".join(
        chr(byte) if chr(byte) in plain else f"={byte:02X}" for byte in text.encode()
    ) or "="
