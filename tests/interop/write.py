"""Publishes what `cloudevents` makes of the lines that it is given, to where outbox's consumers read.

A line is JSON: `attributes`, `data`, and `mode`, which is `binary` or `structured`; `binding` is
another one than the broker's own. With the mode `raw` there is no event in it but a message as any
client may send it: `headers`, `content_type`, `body` in base64, and what sends it to its place,
`type` and `key`.
"""

import argparse
import base64
import json
import sys
from datetime import datetime
from typing import Any

from cloudevents.core.v1.event import CloudEvent

from clients import CLIENTS, Letter, Place
from wire import BINDINGS, Binding, Wire


# ANCHOR: event
def letter_of(event: CloudEvent, binding: Binding, is_structured: bool) -> Letter:
    write = binding.structured if is_structured else binding.binary
    # Events of one key are handled in the order in which they are published.
    key = event.get_extension("partitionkey") or event.get_id()
    return Letter(event.get_type(), key, write(event))
# ANCHOR_END: event


def letter_of_line(line: dict[str, Any], broker: str) -> Letter:
    if line["mode"] == "raw":
        return raw_letter_of(line)
    attributes = line["attributes"]
    if "time" in attributes:
        attributes["time"] = datetime.fromisoformat(attributes["time"])
    event = CloudEvent(attributes, line["data"])
    binding = BINDINGS[line.get("binding", broker)]
    return letter_of(event, binding, line["mode"] == "structured")


def raw_letter_of(line: dict[str, Any]) -> Letter:
    body = base64.b64decode(line["body"])
    wire = Wire(line["headers"], line["content_type"], body, line["key"])
    return Letter(line["type"], line["key"], wire)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--broker", choices=CLIENTS, required=True)
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--namespace", default="outbox")
    arguments.add_argument("--topic", default="events")
    arguments.add_argument("--partitions", type=int, default=16)
    told = arguments.parse_args()
    place = Place(told.url, told.namespace, told.topic, told.partitions)
    letters = [letter_of_line(json.loads(line), told.broker) for line in sys.stdin]
    CLIENTS[told.broker].publish(place, letters)


if __name__ == "__main__":
    main()
