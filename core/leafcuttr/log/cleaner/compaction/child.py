"""The process that compacts: reads rounds from standard input, answers on standard output (see `job`).

Started by the broker when there is work, as `python -m leafcuttr.log.cleaner.compaction.child`. It runs with the lowest
priority, keeps nothing between two rounds, and ends when its input does: with the broker,
however that ends.
"""

import contextlib
import json
import os
import queue
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any, Final

from leafcuttr.log.cleaner.compaction.compact import Compaction
from leafcuttr.log.cleaner.compaction.pages import Throttle, lower_priority
from leafcuttr.log.cleaner.compaction.reading import DamagedDataError
from leafcuttr.log.cleaner.job import Cleaned, Failed, Round, round_of

# What a round needs beside its table: a batch of the largest kind, taken apart.
_BESIDE_TABLE: Final = 768 * 1024 * 1024


class _Broker:
    """The other end of the pipes. Input is read by a thread of its own, so that its end ends a round, too."""

    def __init__(self) -> None:
        self.throttle = Throttle(0)
        self._input: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen(self) -> None:
        status = 1
        try:
            for line in _lines(sys.stdin.fileno()):
                message = json.loads(line)
                if (
                    "rate" in message
                ):  # here, so that the last one sent counts, however late its round is begun
                    self.throttle.rate = message["rate"]
                if message["type"] != "rate":
                    self._input.put(message)
            status = 0
        except Exception as error:
            print(f"the process that compacts cannot read on: {_described(error)}", file=sys.stderr)
        finally:
            os._exit(status)  # the other thread would wait for ever

    def next(self) -> dict[str, Any]:
        return self._input.get()

    def send(self, kind: str, fields: dict[str, Any]) -> None:
        try:
            sys.stdout.write(json.dumps({"type": kind, **fields}) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            os._exit(0)  # the broker has ended

    def cleaned(self, cleaned: Cleaned) -> None:
        self.send("cleaned", cleaned._asdict())
        self.next()


def _lines(descriptor: int) -> Iterator[bytes]:
    """The lines that come in. Not by a buffered reader: a thread that waits in one holds its lock, and an interpreter
    that ends meanwhile, by an exception, aborts because it cannot have that lock."""
    begun: list[bytes] = []
    while more := os.read(descriptor, 1 << 16):
        *ends, rest = more.split(b"\n")
        for end in ends:
            yield b"".join((*begun, end))
            begun.clear()
        begun.append(rest)


def main() -> None:
    """Serve until the input ends."""
    # Ctrl-C in a terminal reaches every process; this one ends when its input does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        lower_priority()
    broker = _Broker()
    threading.Thread(target=broker.listen, daemon=True).start()
    while True:
        _work(broker, broker.next())


def _work(broker: _Broker, message: dict[str, Any]) -> None:
    try:
        round_ = round_of(message)
        _limit_memory(round_)
        broker.send("done", Compaction(round_, broker.throttle, broker.cleaned).run()._asdict())
    except DamagedDataError as error:
        broker.send("failed", Failed(str(error), damage=True)._asdict())
    except MemoryError:
        broker.send("failed", Failed("a batch in it needs too much memory", damage=True)._asdict())
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        broker.send("failed", Failed(f"{error.strerror or error}{where}", damage=False)._asdict())
    except Exception as error:  # unexpected: the broker's line has to say what it was, and where
        broker.send("failed", Failed(_described(error), damage=True)._asdict())


def _limit_memory(round_: Round) -> None:
    """The memory of the machine is the broker's: a batch that needs more than this makes its log uncleanable."""
    most = 4 * round_.table_bytes + _BESIDE_TABLE
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _described(error: Exception) -> str:
    at = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text} ({os.path.basename(at.filename)}, line {at.lineno})"  # noqa: PTH119


if __name__ == "__main__":
    main()
