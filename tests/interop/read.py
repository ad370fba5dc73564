"""Reads what outbox published and tells, a JSON line each, what `cloudevents` makes of it.

The first line is `ready`: from then on nothing that is published is missed.
"""

import argparse
import json

from clients import CLIENTS, Place
from wire import BINDINGS


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--broker", choices=CLIENTS, required=True)
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--namespace", default="outbox")
    arguments.add_argument("--topic", default="events")
    arguments.add_argument("--partitions", type=int, default=16)
    arguments.add_argument("--count", type=int, default=1)
    told = arguments.parse_args()
    client = CLIENTS[told.broker]
    binding = BINDINGS[told.broker]
    place = Place(told.url, told.namespace, told.topic, told.partitions)
    ready = lambda: print("ready", flush=True)
    for partition, wire in client.listen(place, told.count, ready):
        event = binding.read(wire)
        attributes = dict(event.get_attributes())
        key = attributes.get("partitionkey")
        line = {
            "attributes": {**attributes, "time": event.get_time().isoformat()},
            "data": event.get_data(),
            "partition": partition,
            # Where this client would have put it.
            "partition_of_key": key and client.partition_of(key, told.partitions),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
