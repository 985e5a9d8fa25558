"""`leafcuttr spark run` over SASL_SSL has the rights of the page, and no others: each record is there once, what is
missing it names in one line, and the password is in nothing that it says or writes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr_spark.operating.exits import Exit
from spark.commands.piped import NEEDS_SPARK
from spark.commands.secured_pipe import PASSWORD_VARIABLE, Pipe
from support.broker_process import clean_environ
from support.needed_rights import PIPELINE, authorized_broker
from support.secured_broker import PASSWORD, SecuredBroker
from support.spark_patience import TOO_SLOW, TRIES

pytestmark = NEEDS_SPARK
SECONDS = 600.0
_SECRET = PASSWORD.encode()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with authorized_broker(tmp_path_factory.mktemp("spark")) as broker:
        yield broker


class Command(Pipe):
    """It runs by the command."""

    def run(self) -> tuple[int, str]:
        """To the end of what is there; the exit status, and what it says to people."""
        status, said = self._run()
        for _ in range(TRIES - 1):
            if TOO_SLOW in said:
                status, said = self._run()
        return status, said

    def _run(self) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "leafcuttr", "spark", "run", str(self.file), "--once"],
            capture_output=True, text=True, timeout=SECONDS, check=False,
            env=clean_environ({PASSWORD_VARIABLE: PASSWORD}),
        )  # fmt: skip
        written = [each.read_bytes() for each in self.folder.rglob("*") if each.is_file()]
        assert not [
            each for each in (done.stdout.encode(), done.stderr.encode(), *written) if _SECRET in each
        ]
        return done.returncode, done.stderr


def test_it_has_what_it_needs(secured: SecuredBroker, tmp_path: Path) -> None:
    pipe = Command(secured, tmp_path)
    pipe.rights.give(PIPELINE, pipe.app)
    pipe.send(*range(30))
    pipe.rights.send(pipe.app, ["no JSON"])
    for end in (30, 35):
        status, said = pipe.run()
        assert status == Exit.DONE, said
        assert pipe.amounts() == list(range(10, end))
        pipe.send(*range(end, end + 5))
    assert pipe.rights.read(f"{pipe.app}-dead") == ["no JSON"]
    pipe.rights.wait_for_offset(pipe.app, pipe.app, 36)
    denied = [line for line in secured.log.read_text().splitlines() if '"allowed": false' in line]
    assert not [line for line in denied if pipe.app in line]


def test_a_right_is_missing(secured: SecuredBroker, tmp_path: Path) -> None:
    """Each of them: `running/test_secured_rights.py`."""
    pipe = Command(secured, tmp_path)
    missing, *others = PIPELINE
    assert missing.without == "the query fails"
    pipe.rights.give(others, pipe.app)
    pipe.send(*range(30))
    status, said = pipe.run()
    assert status == Exit.FAILED
    assert re.match(f"leafcuttr: .*{missing.says.format(app=pipe.app)}", said.splitlines()[-1]), said
    assert "Traceback" not in said
    pipe.rights.give([missing], pipe.app)
    status, said = pipe.run()
    assert status == Exit.DONE, said
    assert pipe.amounts() == list(range(10, 30))
