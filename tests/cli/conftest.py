"""One broker for all commands that talk to one, and a way to run them as a user does."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from support.broker_process import clean_environ, running_broker
from support.commands import Ran

_NUMBERS = itertools.count(1)


Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_broker(tmp_path_factory.mktemp("cli"), {"num.partitions": "2"}) as broker:
        yield broker.address


@pytest.fixture
def run(address: str) -> Run:
    """`run("topics", "list")` runs the command against the broker; `stdin` is its input."""

    def run(*words: str, stdin: bytes = b"", at: str = address, timeout: float = 120) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "leafcuttr", *words],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env=clean_environ({"LEAFCUTTR_BOOTSTRAP_SERVER": at}),
        )
        err = done.stderr.decode()
        assert "Traceback" not in err, err
        return Ran(done.returncode, done.stdout.decode(), err)

    return run


@pytest.fixture
def topic() -> str:
    """A name that no other test has used."""
    return f"topic-{next(_NUMBERS)}"
