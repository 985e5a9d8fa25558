"""The two brokers under comparison, started once for all scenarios.

`LEAFCUTTR_PARITY_PEER=kafka` puts a second Kafka in LeafCuttr's place: no difference may show then, which is
how the scenarios themselves are checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from parity.run import asked_again
from support import jars
from support.broker_process import running_broker
from support.real_kafka import properties, real_kafka
from support.waiting import free_port

Pair = tuple[tuple[str, int], tuple[str, int]]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The addresses of Kafka and of LeafCuttr, started with the same settings."""
    reason = jars.missing()
    if reason:
        pytest.skip(reason)
    with ExitStack() as stack:
        kafka = stack.enter_context(real_kafka(tmp_path_factory.mktemp("kafka")))
        folder = tmp_path_factory.mktemp("ours")
        if os.environ.get("LEAFCUTTR_PARITY_PEER") == "kafka":
            second = stack.enter_context(real_kafka(folder))
            ours = (second.host, second.port)
        else:
            # Not port 0: the advertised port is written in the same file.
            config = properties(folder, free_port(), free_port())
            served = stack.enter_context(running_broker(folder, config=config))
            ours = (served.host, served.port)
        yield (kafka.host, kafka.port), ours


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told = asked_again()
    if told:
        terminalreporter.write_line(told)
