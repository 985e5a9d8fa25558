"""The process that compacts: reads rounds from standard input, answers on standard output (see `job`).

Started by the broker when there is work, as `python -m leafcuttr.log.cleaner.child`. It runs with what others leave of
processor and disk, holds nothing between two rounds, and ends when its input does: with the broker, however that ends.
"""

import contextlib
import json
import os
import queue
import resource
import sys
import threading
from typing import Any, Final

from leafcuttr.log.cleaner.compact import Compaction
from leafcuttr.log.cleaner.job import Cleaned, Failed, round_of
from leafcuttr.log.cleaner.pages import Throttle, step_back
from leafcuttr.log.cleaner.reading import DamagedDataError

# What a round needs beside its table: a batch of the largest kind, taken apart.
_BESIDE_TABLE: Final = 768 * 1024 * 1024


class _Broker:
    """The other end of the pipes. Input is read by a thread of its own, so that its end ends a round, too."""

    def __init__(self) -> None:
        self.throttle = Throttle(0)
        self._input: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "rate" in message:  # here, so that the last one said counts, however late its round is begun
                self.throttle.rate = message["rate"]
            if message["say"] != "rate":
                self._input.put(message)
        os._exit(0)

    def next(self) -> dict[str, Any]:
        return self._input.get()

    def say(self, kind: str, fields: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"say": kind, **fields}) + "\n")
        sys.stdout.flush()

    def cleaned(self, cleaned: Cleaned) -> None:
        self.say("cleaned", cleaned._asdict())
        self.next()


def main() -> None:
    """Serve until the input ends."""
    with contextlib.suppress(OSError):
        step_back()
    broker = _Broker()
    threading.Thread(target=broker.listen, daemon=True).start()
    while True:
        _work(broker, broker.next())


def _work(broker: _Broker, message: dict[str, Any]) -> None:
    round_ = round_of(message)
    # The memory of the machine is the broker's: a batch that needs more than this makes its log uncleanable.
    most = 4 * round_.table_bytes + _BESIDE_TABLE
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        broker.say("done", Compaction(round_, broker.throttle, broker.cleaned).run()._asdict())
    except DamagedDataError as error:
        broker.say("failed", Failed(str(error), damage=True)._asdict())
    except MemoryError:
        broker.say("failed", Failed("a batch in it needs too much memory", damage=True)._asdict())
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        broker.say("failed", Failed(f"{error.strerror or error}{where}", damage=False)._asdict())


if __name__ == "__main__":
    main()
