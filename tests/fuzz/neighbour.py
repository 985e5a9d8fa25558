"""A well-behaved client in a process of its own: how long its requests take while somebody else misbehaves.

neighbour.py PORT TOPIC          until standard input closes; then one JSON line: p50, p99 and max in ms, count
"""

import json
import select
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "bench"))

from rawclient import RawClient


def main() -> None:
    client = RawClient(int(sys.argv[1]))
    topic = sys.argv[2]
    client.create_topic(topic)
    while client.produce(topic):
        client.create_topic(topic)
    delays = []
    while not select.select([sys.stdin], [], [], 0.005)[0]:
        began = time.perf_counter()
        code = client.produce(topic)
        delays.append((time.perf_counter() - began) * 1000)
        if code:
            sys.exit(f"error {code}")
    delays.sort()
    print(
        json.dumps(
            {
                "n": len(delays),
                "p50_ms": delays[len(delays) // 2],
                "p99_ms": delays[len(delays) * 99 // 100],
                "max_ms": delays[-1],
            }
        )
    )


if __name__ == "__main__":
    main()
