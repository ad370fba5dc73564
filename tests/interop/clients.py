"""Plain clients: what comes out of the place that one topic of outbox has at each broker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator

import kafka
import nats
import pika
import redis
from kafka.partitioner.default import murmur2

from wire import CONTENT_TYPE, Wire, partition_of, token, with_content_type

SECONDS = 30


@dataclass(frozen=True)
class Place:
    """A topic of outbox's, by the names that are derived from its namespace."""

    url: str
    namespace: str
    topic: str
    partitions: int

    @property
    def name(self) -> str:
        return f"{self.namespace}.{self.topic}"

    @property
    def hosts(self) -> str:
        return self.url.partition("://")[2]


@dataclass(frozen=True)
class Letter:
    """What is published: where it goes is told by type and key."""

    event_type: str
    key: str
    wire: Wire


Found = tuple[int, Wire]
"""A message and the partition that it was in."""


class Nats:
    @staticmethod
    def publish(place: Place, letters: Iterable[Letter]) -> None:
        asyncio.run(Nats._publish(place, letters))

    # ANCHOR: nats
    @staticmethod
    async def _publish(place: Place, letters: Iterable[Letter]) -> None:
        client = await nats.connect(place.url)
        for letter in letters:
            partition = partition_of(letter.key, place.partitions)
            await client.jetstream().publish(
                f"{place.name}.{partition}.{letter.event_type}.{token(letter.key)}",
                letter.wire.body,
                headers=with_content_type(letter.wire),
            )
        await client.close()
    # ANCHOR_END: nats

    @staticmethod
    def listen(place: Place, count: int, ready: Callable[[], None]) -> list[Found]:
        return asyncio.run(Nats._listen(place, count, ready))

    @staticmethod
    async def _listen(place: Place, count: int, ready: Callable[[], None]) -> list[Found]:
        client = await nats.connect(place.url)
        subscription = await client.jetstream().subscribe(
            f"{place.name}.>", ordered_consumer=True
        )
        ready()
        found = []
        for _ in range(count):
            message = await subscription.next_msg(timeout=SECONDS)
            headers = dict(message.headers or {})
            content_type = headers.pop("Content-Type", None)
            partition = int(message.subject.split(".")[2])
            found.append((partition, Wire(headers, content_type, message.data)))
        await client.close()
        return found

    partition_of = staticmethod(partition_of)


class Kafka:
    # ANCHOR: kafka
    @staticmethod
    def publish(place: Place, letters: Iterable[Letter]) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=place.hosts, acks="all")
        for letter in letters:
            headers = with_content_type(letter.wire)
            producer.send(
                place.name,
                key=letter.wire.key and letter.wire.key.encode(),
                value=letter.wire.body,
                headers=[(name, value.encode()) for name, value in headers.items()],
            ).get(timeout=SECONDS)
        producer.close()
    # ANCHOR_END: kafka

    @staticmethod
    def listen(place: Place, count: int, ready: Callable[[], None]) -> Iterator[Found]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=place.hosts,
            enable_auto_commit=False,
            consumer_timeout_ms=SECONDS * 1000,
        )
        partitions = consumer.partitions_for_topic(place.name)
        consumer.assign([kafka.TopicPartition(place.name, one) for one in partitions])
        consumer.seek_to_beginning()
        ready()
        for _, record in zip(range(count), consumer):
            headers = {name: value.decode() for name, value in record.headers}
            content_type = headers.pop(CONTENT_TYPE, None)
            key = None if record.key is None else record.key.decode()
            yield record.partition, Wire(headers, content_type, record.value, key)
        consumer.close()

    @staticmethod
    def partition_of(key: str, partitions: int) -> int:
        return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


class RabbitMq:
    # ANCHOR: rabbitmq
    @staticmethod
    def publish(place: Place, letters: Iterable[Letter]) -> None:
        connection = pika.BlockingConnection(pika.URLParameters(place.url))
        channel = connection.channel()
        channel.confirm_delivery()
        for letter in letters:
            partition = partition_of(letter.key, place.partitions)
            channel.basic_publish(
                exchange=place.name,
                routing_key=f"{partition}.{letter.event_type}",
                body=letter.wire.body,
                properties=pika.BasicProperties(
                    headers=letter.wire.headers,
                    content_type=letter.wire.content_type,
                    delivery_mode=pika.DeliveryMode.Persistent,
                ),
                mandatory=True,
            )
        connection.close()
    # ANCHOR_END: rabbitmq

    @staticmethod
    def listen(place: Place, count: int, ready: Callable[[], None]) -> Iterator[Found]:
        connection = pika.BlockingConnection(pika.URLParameters(place.url))
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, place.name, "#")
        messages = channel.consume(queue, auto_ack=True, inactivity_timeout=SECONDS)
        ready()
        for _, (method, properties, body) in zip(range(count), messages):
            if method is None:
                raise TimeoutError("no message came")
            partition = int(method.routing_key.partition(".")[0])
            yield partition, Wire(properties.headers, properties.content_type, body)
        connection.close()

    partition_of = staticmethod(partition_of)


class Redis:
    # ANCHOR: redis
    @staticmethod
    def publish(place: Place, letters: Iterable[Letter]) -> None:
        client = redis.Redis.from_url(place.url)
        for letter in letters:
            partition = partition_of(letter.key, place.partitions)
            fields = {**with_content_type(letter.wire), "data": letter.wire.body}
            client.xadd(f"{{{place.name}.{partition}}}", fields)
        client.close()
    # ANCHOR_END: redis

    @staticmethod
    def listen(place: Place, count: int, ready: Callable[[], None]) -> Iterator[Found]:
        client = redis.Redis.from_url(place.url)
        names = {f"{{{place.name}.{one}}}": one for one in range(place.partitions)}
        seen = {name: "0" for name in names}
        ready()
        for _ in range(count):
            answer = client.xread(seen, count=1, block=SECONDS * 1000)
            if not answer:
                raise TimeoutError("no entry came")
            [name, [(position, fields), *_]], *_ = answer
            seen[name.decode()] = position
            body = fields.pop(b"data")
            headers = {name.decode(): value.decode() for name, value in fields.items()}
            content_type = headers.pop(CONTENT_TYPE, None)
            yield names[name.decode()], Wire(headers, content_type, body)
        client.close()

    partition_of = staticmethod(partition_of)


CLIENTS = {"nats": Nats, "kafka": Kafka, "rabbitmq": RabbitMq, "redis": Redis}
