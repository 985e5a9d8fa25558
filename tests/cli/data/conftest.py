"""The same tests against our broker and, in the long run, against a real Apache Kafka."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leafcuttr.cli.root import cli
from support import jars
from support.broker_process import running_broker
from support.commands import Ran
from support.real_kafka import real_kafka


@pytest.fixture
def run(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ran]]:
    """The command in this process: a start of the interpreter for each would cost more than all else. Standard input
    is a file, as in `< file`."""

    def run(*words: object, stdin: bytes = b"", at: str = address) -> Ran:
        source = tmp_path / "standard-input"
        source.write_bytes(stdin)
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
        with source.open() as file, monkeypatch.context() as patch:
            patch.setenv("LEAFCUTTR_BOOTSTRAP_SERVER", at)
            for name, stream in (("stdin", file), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, stream)
            try:
                cli.main([str(word) for word in words], prog_name="leafcuttr")
            except SystemExit as ended:
                status = ended.code or 0
        assert isinstance(status, int)
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
        return Ran(status, *texts)

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session", params=["leafcuttr", pytest.param("kafka", marks=pytest.mark.long)])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp(f"data-{request.param}")
    if request.param == "leafcuttr":
        with running_broker(folder, {"num.partitions": "2"}) as broker:
            yield broker.address
        return
    reason = jars.missing()
    if reason:
        pytest.skip(reason)
    with real_kafka(folder, "num.partitions=2") as kafka:
        yield str(kafka)
